INSERT INTO schedule (queue, name, wake_at) VALUES ($1, $2, $3)
ON CONFLICT (queue, name) DO UPDATE SET wake_at = least(schedule.wake_at, excluded.wake_at)
