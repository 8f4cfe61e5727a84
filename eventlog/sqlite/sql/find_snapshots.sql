SELECT stream, version, fingerprint, data FROM snapshots WHERE stream IN (:names)
