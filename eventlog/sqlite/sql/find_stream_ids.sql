SELECT name, id FROM streams WHERE name IN (:names)
