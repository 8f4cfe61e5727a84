"""Programs written with intentlog, as a user would write them: run from the root of the checkout, and imported from there by the tests."""
