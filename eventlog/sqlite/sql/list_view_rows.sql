SELECT key, value FROM view_rows WHERE view = ? AND key >= ? AND key < ? ORDER BY key
