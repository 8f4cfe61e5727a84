SELECT name, wake_at FROM schedule WHERE queue = ? AND name IN (:names)
