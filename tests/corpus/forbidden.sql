-- Questions that are refused before anything is spent, each with a piece of what it is told.
-- `budget: pure` asks under ε-DP; {n} in a question is made long or deep by the test.

-- name: star
-- says: SELECT * is not answered
SELECT * FROM visits;

-- name: star_of_a_table
-- says: SELECT * is not answered
SELECT v.* FROM visits AS v;

-- name: star_in_a_subquery
-- says: SELECT * is not answered
SELECT COUNT(*) AS n FROM (SELECT * FROM visits) AS v;

-- name: raw_columns
-- says: rows of private tables are not shown
SELECT ward, cost FROM visits;

-- name: raw_column_beside_an_aggregate
-- says: is neither grouped by nor inside an aggregate
SELECT ward, COUNT(*) AS n FROM visits;

-- name: raw_rows_by_ctes
-- says: rows of private tables are not shown
WITH some_rows AS (SELECT cost FROM visits) SELECT cost FROM some_rows;

-- name: grouping_by_the_unit
-- says: each of these groups would be of one person
SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id;

-- name: grouping_by_the_unit_disguised
-- says: the unit column patient_id in GROUP BY
SELECT patient_id + 0 AS p, COUNT(*) AS n FROM visits GROUP BY p;

-- name: unit_in_where
-- says: the unit column patient_id in WHERE
SELECT COUNT(*) AS n FROM visits WHERE patient_id = 17;

-- name: unit_in_where_of_a_subquery
-- says: the unit column patient_id in WHERE
SELECT COUNT(*) AS n FROM (SELECT cost FROM visits WHERE patient_id IN (17, 18)) AS v;

-- name: unit_in_select
-- says: the unit column patient_id in SUM
SELECT SUM(patient_id) AS n FROM visits;

-- name: unit_counted
-- says: the unit column patient_id in COUNT
SELECT COUNT(patient_id) AS n FROM visits;

-- name: unit_in_filter
-- says: the unit column patient_id in FILTER
SELECT COUNT(*) FILTER (WHERE patient_id < 100) AS n FROM visits;

-- name: unit_renamed_in_where
-- says: the unit column p in WHERE
SELECT COUNT(*) AS n FROM (SELECT patient_id AS p FROM visits) AS v WHERE p = 17;

-- name: unit_in_an_inner_having
-- says: the unit column
SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS k FROM visits GROUP BY patient_id
HAVING COUNT(*) > patient_id) AS each;

-- name: unit_in_an_inner_aggregate
-- says: the unit column
SELECT COUNT(*) AS n FROM (SELECT MIN(patient_id) AS p FROM visits GROUP BY patient_id) AS each
WHERE p = 17;

-- name: right_join
-- says: keeps rows of the public side
SELECT COUNT(*) AS n FROM visits AS v RIGHT JOIN wards AS w ON v.ward = w.ward;

-- name: full_join
-- says: keeps rows of the public side
SELECT COUNT(*) AS n FROM visits AS v FULL JOIN wards AS w ON v.ward = w.ward;

-- name: public_left_join_private
-- says: keeps rows of the public side
SELECT COUNT(*) AS n FROM wards AS w LEFT JOIN visits AS v ON v.ward = w.ward;

-- name: semi_join
-- says: SEMI JOIN is not answered
SELECT COUNT(*) AS n FROM visits AS v SEMI JOIN prescriptions AS p ON v.patient_id = p.patient_id;

-- name: in_subquery
-- says: a subquery in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE age IN (SELECT age FROM visits WHERE cost > 1000);

-- name: exists
-- says: a subquery in WHERE is not answered
SELECT COUNT(*) AS n FROM visits AS v
WHERE EXISTS (SELECT 1 FROM prescriptions AS p WHERE p.drug = v.diagnosis);

-- name: scalar_subquery
-- says: a subquery in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits);

-- name: scalar_subquery_in_select
-- says: over aggregates is not answered
SELECT COUNT(*) AS n, (SELECT MAX(cost) FROM visits) AS dearest FROM visits;

-- name: scalar_subquery_in_having
-- says: is not answered
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT COUNT(*) FROM visits) / 5;

-- name: scalar_subquery_inside_an_aggregate
-- says: a subquery in
SELECT SUM(CASE WHEN cost > (SELECT AVG(cost) FROM visits) THEN 1 ELSE 0 END) AS n FROM visits;

-- name: private_subquery_in_a_public_select
-- says: subquery
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward, (SELECT COUNT(*) FROM visits) AS k FROM wards) AS w ON v.ward = w.ward
WHERE w.k > 4999;

-- name: private_subquery_in_a_public_having
-- says: subquery
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward FROM wards GROUP BY ward HAVING (SELECT COUNT(*) FROM visits) > 4999) AS w
ON v.ward = w.ward;

-- name: private_subquery_in_a_public_order
-- says: subquery
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward FROM wards
      ORDER BY (SELECT COUNT(*) FROM visits AS x WHERE x.ward = wards.ward) LIMIT 1) AS w
ON v.ward = w.ward;

-- name: private_subquery_in_a_public_limit
-- says: subquery
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward FROM wards LIMIT (SELECT COUNT(*) - 4999 FROM visits)) AS w ON v.ward = w.ward;

-- name: private_exists_in_a_public_select
-- says: subquery
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward, EXISTS (SELECT 1 FROM visits WHERE cost > 1900) AS b FROM wards) AS w
ON v.ward = w.ward WHERE w.b;

-- name: private_subquery_in_a_frame
-- says: frame
-- bounds: r=0:1000
SELECT SUM(r) AS total FROM (
  SELECT SUM(age) OVER (PARTITION BY patient_id ORDER BY visited
    ROWS BETWEEN (SELECT COUNT(*) FROM prescriptions) PRECEDING AND CURRENT ROW) AS r FROM visits
) AS t;

-- name: different_populations
-- says: different populations
SELECT COUNT(*) AS n FROM visits AS v JOIN staff AS s ON v.patient_id = s.staff_id;

-- name: different_populations_united
-- says: one population on both sides
SELECT COUNT(*) AS n FROM (SELECT age FROM visits UNION ALL SELECT age FROM staff) AS both_ages;

-- name: private_join_not_through_the_unit
-- says: joined through the unit
SELECT COUNT(*) AS n FROM visits AS v JOIN prescriptions AS p ON v.visited = p.day;

-- name: private_join_through_the_unit_or_not
-- says: joined through the unit
SELECT COUNT(*) AS n FROM visits AS v JOIN prescriptions AS p
ON v.patient_id = p.patient_id OR v.visited = p.day;

-- name: private_cross_join
-- says: joined through the unit
SELECT COUNT(*) AS n FROM visits, prescriptions;

-- name: private_join_of_a_unit_with_itself
-- says: joined through the unit
SELECT COUNT(*) AS n FROM visits AS v JOIN prescriptions AS p ON v.patient_id = v.patient_id;

-- name: random_in_where
-- says: RAND in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE random() < 0.5;

-- name: random_of_aggregates
-- says: not known to be the same each time
SELECT COUNT(*) * random() AS n FROM visits;

-- name: random_order_of_public_rows
-- says: the same each time
SELECT COUNT(*) AS n FROM visits AS v
JOIN (SELECT ward FROM wards ORDER BY random() LIMIT 1) AS w ON v.ward = w.ward;

-- name: now
-- says: NOW in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE visited < now();

-- name: current_date
-- says: CURRENTDATE in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE visited < current_date;

-- name: current_time_of_the_answer
-- says: the same each time
SELECT COUNT(*) AS n, current_time AS t FROM visits;

-- name: uuid_of_the_answer
-- says: the same each time
SELECT COUNT(*) AS n, uuid() AS t FROM visits;

-- name: local_timestamp_of_the_answer
-- says: the same each time
SELECT COUNT(*) AS n, localtimestamp AS t FROM visits;

-- name: string_agg
-- says: is not answered; COUNT, SUM, AVG
SELECT STRING_AGG(diagnosis, ',') AS all_of_them FROM visits;

-- name: array_agg
-- says: is not answered; COUNT, SUM, AVG
SELECT ARRAY_AGG(cost) AS all_of_them FROM visits;

-- name: any_value
-- says: is not answered
SELECT ANY_VALUE(cost) AS one FROM visits;

-- name: sum_distinct
-- says: (DISTINCT ...) is not answered
SELECT SUM(DISTINCT cost) AS total FROM visits;

-- name: distinct_rows
-- says: rows of private tables are not shown
SELECT DISTINCT patient_id, ward FROM visits;

-- name: distinct_rows_of_a_column
-- says: SELECT DISTINCT of private rows
SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) AS w;

-- name: limit_in_a_subquery
-- says: LIMIT of private rows is not answered
SELECT COUNT(*) AS n FROM (SELECT cost FROM visits LIMIT 10) AS v;

-- name: order_in_a_subquery
-- says: ORDER of private rows is not answered
SELECT COUNT(*) AS n FROM (SELECT cost FROM visits ORDER BY cost DESC) AS v;

-- name: union_distinct
-- says: UNION ALL of like tables is
SELECT COUNT(*) AS n
FROM (SELECT patient_id FROM visits UNION SELECT patient_id FROM prescriptions) AS u;

-- name: except
-- says: UNION ALL of like tables is
SELECT COUNT(*) AS n
FROM (SELECT patient_id FROM visits EXCEPT SELECT patient_id FROM prescriptions) AS u;

-- name: except_at_the_top
-- says: is not answered
SELECT ward FROM visits EXCEPT SELECT ward FROM wards;

-- name: window_across_units
-- says: add PARTITION BY the unit column
SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (ORDER BY cost) AS r FROM visits) AS v WHERE r < 5;

-- name: window_by_ward
-- says: add PARTITION BY the unit column
SELECT COUNT(*) AS n FROM (SELECT LAG(cost) OVER (PARTITION BY ward ORDER BY cost) AS c FROM visits) AS v;

-- name: window_over_aggregates
-- says: WINDOW over aggregates is not answered
SELECT ward, SUM(COUNT(*)) OVER () AS n FROM visits GROUP BY ward;

-- name: unknown_function
-- says: FROBNICATE in WHERE is not answered
SELECT COUNT(*) AS n FROM visits WHERE frobnicate(cost) > 1;

-- name: unknown_aggregate
-- says: is not answered
SELECT FROBNICATE(cost) AS n FROM visits;

-- name: hash_function
-- says: is not answered
SELECT COUNT(*) AS n FROM visits WHERE hash(ward) % 2 = 0;

-- name: insert
-- says: INSERT is not answered
INSERT INTO visits VALUES (1, 'x', 1, 1, NULL, NULL, NULL);

-- name: drop
-- says: DROP is not answered
DROP TABLE visits;

-- name: update
-- says: UPDATE is not answered
UPDATE visits SET cost = 0;

-- name: delete
-- says: DELETE is not answered
DELETE FROM visits;

-- name: create
-- says: CREATE is not answered
CREATE TABLE mine AS SELECT cost FROM visits;

-- name: copy
-- says: COPY is not answered
COPY visits TO '/tmp/visits.csv';

-- name: attach
-- says: ATTACH is not answered
ATTACH '/tmp/other.db' AS other;

-- name: pragma
-- says: PRAGMA is not answered
PRAGMA database_list;

-- name: set
-- says: is not answered
SET threads = 1;

-- name: describe
-- says: is not answered
DESCRIBE visits;

-- name: two_statements
-- says: not several statements
SELECT COUNT(*) AS n FROM visits; DROP TABLE visits;

-- name: nothing
-- says: the text of one SELECT

-- name: table_function
-- says: functions in FROM are not answered
SELECT COUNT(*) AS n FROM read_csv('/etc/passwd');

-- name: table_function_joined
-- says: functions in FROM are not answered
SELECT COUNT(*) AS n FROM visits, read_text('/etc/passwd') AS t;

-- name: file_as_a_table
-- says: there is no table
SELECT COUNT(*) AS n FROM '/etc/passwd';

-- name: generated_series
-- says: functions in FROM are not answered
SELECT COUNT(*) AS n FROM visits, generate_series(1, 10) AS g;

-- name: unnest
-- says: is not answered
SELECT COUNT(*) AS n FROM visits, UNNEST([1, 2]) AS u(x);

-- name: system_table
-- says: there is no table
SELECT COUNT(*) AS n FROM duckdb_tables;

-- name: information_schema
-- says: there is no table
SELECT COUNT(*) AS n FROM information_schema.tables;

-- name: table_of_a_schema
-- says: without a schema
SELECT COUNT(*) AS n FROM main.visits;

-- name: hidden_source
-- says: reserved
SELECT COUNT(*) AS n FROM deniable_source_1;

-- name: hidden_column
-- says: reserved
SELECT COUNT(DISTINCT deniable_unit) AS n FROM visits;

-- name: unknown_table
-- says: did you mean visits?
SELECT COUNT(*) AS n FROM vists;

-- name: unknown_column
-- says: did you mean cost
SELECT SUM(costs) AS total FROM visits;

-- name: unknown_column_in_where
-- says: did you mean diagnosis?
SELECT COUNT(*) AS n FROM visits WHERE diagnosi = 'asthma';

-- name: ambiguous_column
-- says: is in several tables
SELECT COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward WHERE ward = 'surgery';

-- name: sum_of_text
-- says: is of numbers
SELECT SUM(ward) AS total FROM visits;

-- name: bounds_too_wide
-- says: the bounds are too wide
-- bounds: cost=-1e30:1e30; age=-1e18:1e18
SELECT SUM(age * age) AS total FROM visits;

-- name: unknown_keys_under_pure_dp
-- budget: pure
-- says: the groups of age are not public
SELECT age, COUNT(*) AS n FROM visits GROUP BY age;

-- name: qualify
-- says: QUALIFY is not answered
SELECT ward FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id) = 1;

-- name: using_sample
-- says: USING SAMPLE is not answered
SELECT COUNT(*) AS n FROM visits USING SAMPLE 10%;

-- name: table_sample
-- says: is not answered
SELECT COUNT(*) AS n FROM visits TABLESAMPLE 10%;

-- name: pivot
-- says: is not answered
PIVOT visits ON ward USING COUNT(*);

-- name: recursive_cte
-- says: WITH RECURSIVE is not answered
WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 10)
SELECT COUNT(*) AS n FROM visits JOIN r ON visits.age = r.x;

-- name: lateral
-- says: is not answered
SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT v.cost AS c) AS l;

-- name: released_answers_asked_again
-- says: is not answered
SELECT MAX(n) AS most FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS w;

-- name: public_table_alone
-- says: names no private table
SELECT COUNT(*) AS n FROM wards;

-- name: no_table
-- says: needs FROM and a table
SELECT 1 AS one;

-- name: no_aggregate
-- says: at least one aggregate
SELECT ward FROM visits GROUP BY ward;

-- name: fractions_as_groups
-- says: fractions are no groups
SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost;

-- name: parameter
-- says: is not answered
SELECT COUNT(*) AS n FROM visits WHERE age > ?;

-- name: limit_by_an_expression
-- says: LIMIT takes a whole number
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 1 + 1;

-- name: broken_with_a_place
-- says: the SQL is broken at line 2
SELECT COUNT(*) AS n
FROM visits WHERE GROUP BY;

-- name: open_quote
-- says: the SQL is broken
SELECT COUNT(*) AS n FROM visits WHERE ward = 'surgery;

-- name: open_bracket
-- says: the SQL is broken
SELECT COUNT(* AS n FROM visits;

-- name: gibberish
-- says: SQL is broken
)( not ;; sql at all $$;

-- name: five_hundred_brackets
-- says: cannot be read
SELECT COUNT(*) AS n FROM visits WHERE {brackets};

-- name: three_hundred_nested_functions
-- says: cannot be read
SELECT COUNT(*) AS n FROM visits WHERE {functions} = 1;

-- name: hundred_nested_subqueries
-- says: cannot be read
SELECT COUNT(*) AS n FROM {subqueries};

-- name: two_thousand_sums
-- says: too long
SELECT COUNT(*) AS n FROM visits WHERE age = {sums};

-- name: literal_of_ten_megabytes
-- says: is too long
SELECT COUNT(*) AS n FROM visits WHERE ward = '{long}';

-- name: number_beyond_any_double
-- says: between 1e-290 and 1e300
SELECT SUM(CASE WHEN urgent THEN 1e400 ELSE 0 END) AS total FROM visits;

-- name: number_of_five_thousand_digits
-- says: between 1e-290 and 1e300
SELECT SUM(age + 1e5000) AS total FROM visits;

-- name: function_of_the_wrong_type
-- says: LENGTH in WHERE is of text, not of a boolean
SELECT COUNT(*) AS n FROM visits WHERE LENGTH(urgent) > 3;

-- name: sum_of_a_date_and_text
-- says: is moved by a constant
SELECT COUNT(*) AS n FROM visits WHERE visited + ward > 3;

-- name: keys_of_the_wrong_type
-- says: keys
-- keys: ward=1, 2
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- name: frame_by_a_private_column
-- says: ROWS
-- bounds: r=0:1000
SELECT SUM(r) AS total FROM (
  SELECT SUM(age) OVER (PARTITION BY patient_id ORDER BY visited
    ROWS BETWEEN age PRECEDING AND CURRENT ROW) AS r FROM visits
) AS t;

-- name: ungrouped_column_beside_an_inner_aggregate
-- says: age
-- bounds: t=0:10
SELECT AVG(t) AS mean FROM (SELECT SUM(cost) + age AS t FROM visits GROUP BY patient_id) AS each;

-- name: coalesce_of_text_and_number
-- says: values of different types
SELECT COUNT(COALESCE(ward, age)) AS n FROM visits;

-- name: window_offset_by_data
-- says: offset of LAG is a constant
-- bounds: k=0:10
SELECT SUM(k) AS t FROM (SELECT LAG(age, CAST(ward AS INTEGER)) OVER
(PARTITION BY patient_id ORDER BY visited) AS k FROM visits) AS t;

-- name: window_frame_by_data
-- says: frame
-- bounds: k=0:10
SELECT SUM(k) AS t FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id
ORDER BY visited ROWS BETWEEN age PRECEDING AND CURRENT ROW) AS k FROM visits) AS t;

-- name: window_range_of_days
-- says: frame
-- bounds: k=0:10
SELECT SUM(k) AS t FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id
ORDER BY visited RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS k FROM visits) AS t;

-- name: distinct_on
-- says: DISTINCT ON
SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (patient_id) patient_id, ward FROM visits) AS t;

-- name: several_shares_in_one_column
-- says: one constant share between 0 and 1
SELECT QUANTILE_CONT(cost, [0.25, 0.5]) AS q FROM visits;

-- name: share_beyond_one
-- says: a share between 0 and 1
SELECT QUANTILE_CONT(cost, 1.5) AS q FROM visits;

-- name: share_from_data
-- says: one constant share between 0 and 1
SELECT QUANTILE_CONT(cost, age / 100) AS q FROM visits;

-- name: rollup_of_hidden_groups
-- says: need public groups
SELECT age, ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (age, ward);

-- name: rollup_of_quantiles
-- says: ask for each grouping
SELECT ward, MEDIAN(cost) AS m FROM visits GROUP BY ROLLUP (ward);

-- name: rollup_inside
-- says: in the outer SELECT only
SELECT COUNT(*) AS n FROM (SELECT patient_id, ward FROM visits GROUP BY ROLLUP (patient_id, ward)) AS q;

-- name: grouping_twice
-- says: stands twice
SELECT ward, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (ward));

-- name: buckets_of_no_width
-- says: WIDTH_BUCKET takes two constant ends
SELECT WIDTH_BUCKET(cost, 10, 10, 5) AS b, COUNT(*) AS n FROM visits GROUP BY b;

-- name: slope
-- says: is not answered; COUNT, SUM, AVG
SELECT REGR_SLOPE(cost, age) AS slope FROM visits;
