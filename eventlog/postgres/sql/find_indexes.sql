-- Every index of the schema that is whole: its table, whether it is unique, its columns, whether it leaves rows out.
SELECT
    t.relname::text, i.indisunique AND i.indimmediate,
    ARRAY(
        SELECT coalesce(a.attname::text, '')
        FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, place) LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum
        ORDER BY k.place
    ),
    i.indpred IS NOT NULL
FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
WHERE t.relnamespace = to_regnamespace($1) AND i.indisvalid AND i.indisready
