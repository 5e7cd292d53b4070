-- Questions of analysts. Comment lines before a question are its options: bounds (of columns and
-- of names), keys, max_rows. Columns that count start with n, quantiles with q_.

-- name: count_all
SELECT COUNT(*) AS n FROM visits;

-- name: count_by_ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;

-- name: count_column_with_nulls
SELECT COUNT(cost) AS n_cost, COUNT(diagnosis) AS n_diagnosis, COUNT(*) AS n FROM visits;

-- name: count_column_by_ward
SELECT ward, COUNT(diagnosis) AS n FROM visits WHERE cost IS NOT NULL GROUP BY ward;

-- name: count_patients
SELECT COUNT(DISTINCT patient_id) AS n FROM visits;

-- name: count_patients_and_visits_by_ward
SELECT ward, COUNT(DISTINCT patient_id) AS n_patients, COUNT(*) AS n FROM visits GROUP BY ward;

-- name: count_patients_by_diagnosis_and_urgency
SELECT diagnosis, urgent, COUNT(DISTINCT patient_id) AS n
FROM visits WHERE diagnosis IS NOT NULL GROUP BY diagnosis, urgent;

-- name: count_distinct_wards
SELECT COUNT(DISTINCT ward) AS n_wards, COUNT(DISTINCT diagnosis) AS n_diagnoses FROM visits;

-- name: count_distinct_days_by_ward
SELECT ward, COUNT(DISTINCT visited) AS n_days FROM visits GROUP BY ward;

-- name: count_distinct_expression_filtered
SELECT COUNT(DISTINCT age // 10) FILTER (WHERE urgent) AS n_decades, COUNT(*) AS n FROM visits;

-- name: sum_of_cost
SELECT SUM(cost) AS total FROM visits;

-- name: sum_by_ward
SELECT ward, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward;

-- name: sum_of_whole_numbers
SELECT urgent, SUM(age) AS years FROM visits GROUP BY urgent;

-- name: average_cost
SELECT AVG(cost) AS mean FROM visits;

-- name: average_by_ward
SELECT ward, AVG(cost) AS mean, AVG(age) AS years FROM visits GROUP BY ward;

-- name: variance_of_cost
SELECT VARIANCE(cost) AS v, VAR_POP(cost) AS vp FROM visits;

-- name: deviation_by_urgency
SELECT urgent, STDDEV(cost) AS s, STDDEV_POP(cost) AS sp FROM visits GROUP BY urgent;

-- name: spread_of_age
SELECT VAR_SAMP(age) AS v, STDDEV_SAMP(age) AS s, VAR_POP(age) AS vp, STDDEV_POP(age) AS sp
FROM visits;

-- name: all_moments_by_ward
SELECT ward, COUNT(cost) AS n, SUM(cost) AS total, AVG(cost) AS mean, STDDEV(cost) AS s
FROM visits GROUP BY ward;

-- name: variance_by_diagnosis_having
SELECT diagnosis, VARIANCE(cost) AS v, COUNT(*) AS n
FROM visits WHERE diagnosis IS NOT NULL GROUP BY diagnosis HAVING COUNT(*) > 100;

-- name: ratio_of_aggregates
SELECT ward, SUM(cost) / COUNT(cost) AS mean, COUNT(cost) / COUNT(*) AS share
FROM visits GROUP BY ward;

-- name: share_urgent
SELECT 100.0 * COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS percent FROM visits;

-- name: visits_per_patient
SELECT ward, COUNT(*) / COUNT(DISTINCT patient_id) AS each FROM visits GROUP BY ward;

-- name: arithmetic_on_aggregates
SELECT SUM(cost) * 1.2 - COUNT(*) * 10 AS net, ROUND(SUM(cost) / 1000, 0) AS thousands FROM visits;

-- name: coefficient_of_variation
SELECT STDDEV(cost) / AVG(cost) AS cv, SQRT(VARIANCE(cost)) AS s FROM visits;

-- name: filter_where
SELECT ward, COUNT(*) FILTER (WHERE urgent) AS n_urgent,
       SUM(cost) FILTER (WHERE NOT urgent) AS calm
FROM visits GROUP BY ward;

-- name: filter_average
SELECT AVG(cost) FILTER (WHERE urgent) + AVG(cost) FILTER (WHERE NOT urgent) AS both,
       AVG(age) FILTER (WHERE diagnosis = 'diabetes') AS years
FROM visits;

-- name: filter_distinct_patients
SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age >= 65) AS n_old,
       COUNT(DISTINCT patient_id) FILTER (WHERE urgent AND age < 18) AS n_young
FROM visits;

-- name: case_inside_sum
SELECT ward, SUM(CASE WHEN urgent THEN 1 ELSE 0 END) AS n_urgent FROM visits GROUP BY ward;

-- name: case_inside_several
SELECT SUM(CASE WHEN age >= 65 THEN cost ELSE 0 END) AS old,
       AVG(CASE WHEN urgent THEN cost END) AS mean,
       COUNT(CASE WHEN ward = 'surgery' THEN 1 END) AS n
FROM visits;

-- name: case_with_operand_inside
SELECT SUM(CASE ward WHEN 'surgery' THEN 2 WHEN 'oncology' THEN 3 ELSE 1 END) AS weight
FROM visits;

-- name: expression_inside_sum
SELECT SUM(cost * 0.8 + 5) AS reduced, SUM(cost / 100) AS hundreds, SUM(ABS(age - 50)) AS far
FROM visits;

-- name: expression_inside_average
SELECT ward, AVG(cost * 2) AS twice, AVG(GREATEST(age, 18)) AS adult, AVG(LEAST(cost, 500)) AS cut
FROM visits GROUP BY ward;

-- name: product_of_columns
SELECT SUM(cost * age) AS product, AVG(COALESCE(cost, 0)) AS filled FROM visits;

-- name: cast_inside_average
SELECT ward, AVG(CAST(urgent AS INTEGER)) AS share FROM visits GROUP BY ward;

-- name: case_groups
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS class,
       COUNT(*) AS n, AVG(cost) AS mean
FROM visits GROUP BY class;

-- name: condition_groups
SELECT age >= 65 AS old, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY age >= 65;

-- name: month_groups
-- keys: month=month_times
SELECT DATE_TRUNC('month', visited) AS month, COUNT(*) AS n FROM visits GROUP BY month;

-- name: month_groups_as_dates
-- keys: month=months
SELECT CAST(DATE_TRUNC('month', visited) AS DATE) AS month, COUNT(*) AS n, SUM(cost) AS total
FROM visits GROUP BY 1 ORDER BY 1;

-- name: extract_month
SELECT EXTRACT(month FROM visited) AS month, COUNT(*) AS n FROM visits GROUP BY month ORDER BY month;

-- name: extract_quarter_and_urgency
SELECT EXTRACT(quarter FROM visited) AS quarter, urgent, COUNT(*) AS n
FROM visits GROUP BY quarter, urgent;

-- name: year_and_weekday
-- keys: year=2023..2025
SELECT YEAR(visited) AS year, EXTRACT(dow FROM visited) AS weekday, COUNT(*) AS n
FROM visits GROUP BY year, weekday;

-- name: group_by_first_letter
-- keys: letter=C, E, G, O, S
SELECT UPPER(SUBSTRING(ward, 1, 1)) AS letter, COUNT(*) AS n FROM visits GROUP BY letter;

-- name: group_by_text_functions
-- keys: short=card, emer, geri, onco, surg
SELECT LEFT(LOWER(ward), 4) AS short, COUNT(*) AS n, COUNT(DISTINCT patient_id) AS n_patients
FROM visits GROUP BY short;

-- name: group_by_length
-- keys: letters=5..12
SELECT LENGTH(ward) AS letters, COUNT(*) AS n FROM visits GROUP BY LENGTH(ward);

-- name: group_by_decade
-- keys: decade=0..9
SELECT age // 10 AS decade, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY decade
HAVING COUNT(*) > 300;

-- name: group_by_bins_of_cost
-- keys: bin=0..4
SELECT CAST(FLOOR(cost / 400) AS INTEGER) AS bin, COUNT(*) AS n FROM visits
WHERE cost IS NOT NULL GROUP BY bin;

-- name: group_by_modulus
-- keys: rest=0..6
SELECT age % 7 AS rest, COUNT(*) AS n FROM visits GROUP BY rest;

-- name: group_by_three_columns
SELECT ward, urgent, CASE WHEN age < 50 THEN 'young' ELSE 'old' END AS class, COUNT(*) AS n,
       SUM(age) AS years
FROM visits GROUP BY ward, urgent, class;

-- name: group_by_all
SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ALL;

-- name: group_by_position
SELECT urgent, ward, COUNT(*) AS n, AVG(age) AS years FROM visits GROUP BY 1, 2;

-- name: group_without_showing_it
SELECT COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC;

-- name: where_in_and_between
SELECT COUNT(*) AS n FROM visits
WHERE ward IN ('surgery', 'oncology') AND age BETWEEN 30 AND 60 AND cost NOT BETWEEN 100 AND 200;

-- name: where_not_in
SELECT ward, COUNT(*) AS n FROM visits
WHERE ward NOT IN ('surgery') AND age NOT IN (20, 30, 40) GROUP BY ward;

-- name: where_like
SELECT COUNT(*) AS n FROM visits
WHERE ward LIKE 'c%' OR ward ILIKE '%GERY' OR diagnosis NOT LIKE '%e%';

-- name: where_null_logic
SELECT COUNT(*) AS n FROM visits
WHERE diagnosis IS NULL OR (cost IS NOT NULL AND NOT (diagnosis <> 'asthma'));

-- name: where_coalesce
SELECT COALESCE(diagnosis, 'none') = 'none' AS missing, COUNT(*) AS n FROM visits
WHERE COALESCE(cost, 0) < 300 GROUP BY missing;

-- name: where_casts
SELECT COUNT(*) AS n FROM visits
WHERE CAST(age AS VARCHAR) LIKE '4_' AND CAST(cost AS INTEGER) > 100 AND TRY_CAST(ward AS INTEGER) IS NULL;

-- name: where_arithmetic
SELECT COUNT(*) AS n FROM visits WHERE cost / (age + 1) > 5 AND (age * 2 - 10) % 3 = 0;

-- name: where_guarded_division
SELECT COUNT(*) AS n FROM visits WHERE cost / NULLIF(age - 50, 0) > 1;

-- name: where_dates
SELECT COUNT(*) AS n FROM visits
WHERE visited >= DATE '2024-03-01' AND visited < DATE '2024-03-01' + INTERVAL 3 MONTH
  AND EXTRACT(day FROM visited) <= 15;

-- name: where_date_as_text
SELECT ward, COUNT(*) AS n FROM visits WHERE visited BETWEEN '2024-02-01' AND '2024-06-30'
GROUP BY ward;

-- name: where_date_difference
SELECT COUNT(*) AS n FROM visits WHERE DATE_DIFF('day', DATE '2024-01-01', visited) < 90;

-- name: where_strings
SELECT COUNT(*) AS n FROM visits
WHERE ward || '/' || COALESCE(diagnosis, '') LIKE '%surgery/f%' OR LENGTH(TRIM(ward)) = 8
   OR STARTS_WITH(ward, 'ger') OR REPLACE(ward, 'o', '0') = '0nc0l0gy';

-- name: where_truth
SELECT COUNT(*) AS n FROM visits WHERE urgent AND NOT (age > 40) OR urgent IS FALSE AND age = 41;

-- name: cte_of_rows
WITH dear AS (SELECT patient_id, ward, cost FROM visits WHERE cost > 300)
SELECT ward, COUNT(*) AS n, SUM(cost) AS total, COUNT(DISTINCT patient_id) AS n_patients
FROM dear GROUP BY ward;

-- name: cte_chain
-- bounds: net=0:2000
WITH dear AS (SELECT ward, cost, age FROM visits WHERE cost > 100),
     old AS (SELECT ward, cost * 0.8 AS net FROM dear WHERE age > 40)
SELECT COUNT(*) AS n, SUM(net) AS total FROM old;

-- name: subquery_of_rows
-- bounds: pounds=0:20
SELECT ward, AVG(pounds) AS mean
FROM (SELECT ward, cost / 100 AS pounds FROM visits WHERE urgent) AS part GROUP BY ward;

-- name: subquery_in_subquery
SELECT COUNT(*) AS n
FROM (SELECT years FROM (SELECT age AS years, ward FROM visits) AS a WHERE ward <> 'surgery') AS b
WHERE years > 30;

-- name: distinct_rows_with_the_unit
SELECT ward, COUNT(*) AS n FROM (SELECT DISTINCT patient_id, ward FROM visits) AS pairs
GROUP BY ward;

-- name: per_patient_totals
-- bounds: total=0:20000
SELECT AVG(total) AS mean, COUNT(*) AS n
FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS each;

-- name: per_patient_totals_without_naming_it
-- bounds: total=0:20000
SELECT AVG(total) AS mean, COUNT(*) AS n
FROM (SELECT SUM(cost) AS total FROM visits GROUP BY patient_id) AS each;

-- name: per_patient_counts_binned
-- keys: visits_made=1..23
SELECT visits_made, COUNT(*) AS n
FROM (SELECT COUNT(*) AS visits_made FROM visits GROUP BY patient_id) AS each GROUP BY visits_made;

-- name: per_patient_having
-- bounds: dearest=0:2000; first_age=0:120
WITH each AS (
  SELECT MAX(cost) AS dearest, MIN(age) AS first_age FROM visits
  GROUP BY patient_id HAVING COUNT(*) >= 5
)
SELECT COUNT(*) AS n, AVG(dearest) AS mean, AVG(first_age) AS years FROM each;

-- name: per_patient_arithmetic
-- bounds: share=0:1
SELECT AVG(share) AS mean, COUNT(*) FILTER (WHERE share > 0.5) AS n
FROM (SELECT COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS share FROM visits GROUP BY patient_id) AS e;

-- name: per_patient_and_ward
-- bounds: total=0:20000
SELECT ward, COUNT(*) AS n, AVG(total) AS mean
FROM (SELECT ward, SUM(cost) AS total FROM visits GROUP BY patient_id, ward) AS pairs GROUP BY ward;

-- name: per_patient_distinct
-- bounds: wards_seen=0:5
SELECT SUM(wards_seen) AS total, COUNT(*) FILTER (WHERE wards_seen = 5) AS n
FROM (SELECT COUNT(DISTINCT ward) AS wards_seen FROM visits GROUP BY patient_id) AS each;

-- name: join_public
-- keys: city=Bath, Leeds, York
SELECT city, COUNT(*) AS n, SUM(cost) AS total
FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY city;

-- name: join_public_using
-- keys: city=Bath, Leeds, York
SELECT w.city, COUNT(DISTINCT v.patient_id) AS n
FROM visits AS v JOIN wards AS w USING (ward) WHERE w.beds > 28 GROUP BY w.city;

-- name: join_public_using_shared_column
SELECT ward, COUNT(*) AS n FROM visits LEFT JOIN wards USING (ward) WHERE beds IS NULL GROUP BY ward;

-- name: join_public_left
-- keys: place=Bath, Leeds, York, none
SELECT COALESCE(w.city, 'none') AS place, COUNT(*) AS n, COUNT(w.beds) AS n_beds
FROM visits AS v LEFT JOIN wards AS w ON v.ward = w.ward GROUP BY place;

-- name: join_public_first
-- bounds: beds=0:100
SELECT SUM(w.beds) AS beds, COUNT(*) AS n FROM wards AS w JOIN visits AS v ON v.ward = w.ward;

-- name: join_public_on_an_inequality
-- max_rows: 96
SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.age > w.beds AND v.ward <> w.ward;

-- name: join_public_crossed
-- max_rows: 96
SELECT COUNT(*) AS n FROM visits CROSS JOIN wards;

-- name: join_public_subquery
SELECT v.ward, COUNT(*) AS n
FROM visits AS v JOIN (SELECT ward FROM wards WHERE beds >= 30) AS large ON v.ward = large.ward
GROUP BY v.ward;

-- name: join_private_through_the_unit
SELECT p.drug, COUNT(*) AS n
FROM visits AS v JOIN prescriptions AS p ON v.patient_id = p.patient_id AND p.day = v.visited
GROUP BY p.drug;

-- name: join_private_through_the_unit_in_brackets
SELECT COUNT(*) AS n FROM visits AS v JOIN prescriptions AS p ON (v.patient_id = p.patient_id);

-- name: join_private_using
SELECT COUNT(DISTINCT patient_id) AS n FROM visits JOIN prescriptions USING (patient_id);

-- name: join_private_per_patient
-- bounds: spent=0:20000; drugs=0:1200
SELECT AVG(a.spent) AS mean, SUM(b.drugs) AS total, COUNT(*) AS n
FROM (SELECT patient_id, SUM(cost) AS spent FROM visits GROUP BY patient_id) AS a
JOIN (SELECT patient_id, SUM(price) AS drugs FROM prescriptions GROUP BY patient_id) AS b
  ON a.patient_id = b.patient_id;

-- name: join_private_left
SELECT v.ward, COUNT(p.drug) AS n, AVG(v.age) AS years
FROM visits AS v LEFT JOIN prescriptions AS p
  ON v.patient_id = p.patient_id AND p.drug = 'insulin'
GROUP BY v.ward;

-- name: join_three_tables
-- keys: city=Bath, Leeds, York
SELECT w.city, COUNT(DISTINCT v.patient_id) AS n
FROM visits AS v
JOIN wards AS w ON v.ward = w.ward
JOIN prescriptions AS p ON p.patient_id = v.patient_id
WHERE p.price > 50 GROUP BY w.city;

-- name: union_all
SELECT COUNT(*) AS n, COUNT(DISTINCT patient_id) AS n_patients
FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM prescriptions) AS events;

-- name: union_all_with_bounds
-- keys: kind=visit, drug
SELECT kind, SUM(money) AS total, COUNT(*) AS n
FROM (SELECT 'visit' AS kind, cost AS money FROM visits
      UNION ALL SELECT 'drug' AS kind, price AS money FROM prescriptions) AS events
GROUP BY kind;

-- name: union_all_in_a_cte
-- keys: month=1..12
WITH days AS (SELECT visited AS d FROM visits UNION ALL SELECT day AS d FROM prescriptions)
SELECT MONTH(d) AS month, COUNT(*) AS n FROM days GROUP BY month;

-- name: window_first_visit
SELECT ward, COUNT(*) AS n
FROM (SELECT ward, RANK() OVER (PARTITION BY patient_id ORDER BY visited) AS place FROM visits) AS r
WHERE place = 1 GROUP BY ward;

-- name: window_row_number
SELECT COUNT(*) AS n
FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY visited) AS place FROM visits) AS r
WHERE place <= 3;

-- name: window_lag
SELECT COUNT(*) AS n
FROM (SELECT visited, LAG(visited) OVER (PARTITION BY patient_id ORDER BY visited) AS before
      FROM visits) AS r
WHERE DATE_DIFF('day', before, visited) <= 30;

-- name: window_total
-- bounds: years=0:3000
SELECT COUNT(*) AS n, SUM(years) AS total
FROM (SELECT SUM(age) OVER (PARTITION BY patient_id) AS years FROM visits) AS r WHERE years > 500;

-- name: window_running_count
-- bounds: so_far=0:24
SELECT SUM(so_far) AS total
FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id ORDER BY visited) AS so_far FROM visits) AS r;

-- name: having_order_limit
SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY ward
HAVING COUNT(*) > 600 AND AVG(cost) < 1000 ORDER BY n DESC LIMIT 2;

-- name: having_alias
SELECT diagnosis, SUM(cost) AS total FROM visits WHERE diagnosis IS NOT NULL GROUP BY diagnosis
HAVING total > 200000 ORDER BY total;

-- name: order_limit_offset
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY COUNT(*) DESC, ward LIMIT 2 OFFSET 1;

-- name: order_by_unshown_aggregate
SELECT ward FROM visits GROUP BY ward ORDER BY SUM(cost) DESC;

-- name: null_as_declared_key
-- keys: diagnosis=asthma, diabetes, fracture, influenza, NULL
SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis;

-- name: everything_together
-- bounds: spent=0:8000
-- keys: city=Bath, Leeds, York
WITH spending AS (
  SELECT w.city AS city, v.patient_id AS person, SUM(v.cost) FILTER (WHERE v.urgent) AS spent
  FROM visits AS v JOIN wards AS w USING (ward)
  WHERE v.visited >= DATE '2024-02-01' GROUP BY v.patient_id, w.city
)
SELECT city, COUNT(*) AS n, AVG(spent) AS mean, 100 * COUNT(spent) / COUNT(*) AS percent
FROM spending GROUP BY city HAVING COUNT(*) > 50 ORDER BY city LIMIT 3;

-- name: join_public_numbers_named_in_a_subquery
-- bounds: places=0:100
SELECT SUM(places) AS beds, COUNT(*) AS n
FROM (SELECT w.beds AS places FROM visits AS v JOIN wards AS w ON v.ward = w.ward) AS seen;

-- name: per_patient_totals_without_nulls
-- bounds: total=0:20000
SELECT AVG(total) AS mean, COUNT(*) AS n
FROM (SELECT SUM(cost) AS total FROM visits WHERE cost IS NOT NULL GROUP BY patient_id) AS each;

-- name: per_patient_logarithm
-- bounds: l=0:12
SELECT AVG(l) AS mean
FROM (SELECT LN(SUM(COALESCE(cost, 0)) + 1) AS l FROM visits GROUP BY patient_id) AS each;

-- name: unknown_groups_by_city
-- max_groups: 3
SELECT city, COUNT(*) AS n FROM visits JOIN wards USING (ward) GROUP BY city;

-- name: unknown_groups_of_numbers_having
-- max_groups: 24
SELECT age // 30 AS third, COUNT(*) AS n FROM visits GROUP BY third HAVING third >= 1;

-- name: many_clauses_at_once
-- keys: city=Bath, Leeds, York
SELECT w.city, COUNT(*) AS n, AVG(CASE WHEN v.urgent THEN v.cost END) AS mean,
       COUNT(DISTINCT v.patient_id) FILTER (WHERE v.age > 40) AS n_old
FROM visits AS v LEFT JOIN wards AS w ON v.ward = w.ward
WHERE v.visited BETWEEN DATE '2024-01-15' AND DATE '2024-11-30' AND COALESCE(v.diagnosis, 'x') LIKE '%a%'
  AND w.city IS NOT NULL
GROUP BY w.city HAVING COUNT(*) > 10 ORDER BY n DESC LIMIT 3;

-- name: shares_by_class_and_ward
WITH seen AS (SELECT ward, urgent, age, cost FROM visits WHERE cost IS NOT NULL AND cost < 1500)
SELECT ward, CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS class,
       100.0 * COUNT(*) FILTER (WHERE urgent) / COUNT(*) AS percent, AVG(cost) AS mean
FROM seen GROUP BY ward, class HAVING COUNT(*) > 100 ORDER BY ward, class;

-- name: drugs_of_urgent_patients
SELECT p.drug, COUNT(DISTINCT p.patient_id) AS n, AVG(p.price) AS mean, SUM(p.price) * 1.2 AS gross
FROM prescriptions AS p
JOIN (SELECT patient_id FROM (SELECT DISTINCT patient_id, urgent FROM visits) AS d WHERE urgent) AS u
  ON u.patient_id = p.patient_id
WHERE p.day >= DATE '2024-02-01' GROUP BY p.drug ORDER BY p.drug;

-- name: where_arithmetic_by_ward
SELECT ward, COUNT(*) AS n FROM visits WHERE cost / (age + 10) BETWEEN 2 AND 20 GROUP BY ward;

-- name: per_patient_filtered_count_and_whole_sum
-- bounds: urgent_years=0:3000
SELECT SUM(urgent_years) AS total, COUNT(*) AS n
FROM (SELECT SUM(age) FILTER (WHERE urgent) AS urgent_years, COUNT(*) AS k FROM visits
      GROUP BY patient_id) AS each
WHERE k > 3;

-- name: per_patient_filtered_sum_of_fractions
-- bounds: spent=0:20000
SELECT SUM(spent) AS total
FROM (SELECT SUM(cost) FILTER (WHERE cost IS NOT NULL AND urgent) AS spent FROM visits
      GROUP BY patient_id) AS each;

-- name: per_patient_average
-- bounds: mean_cost=0:2000
SELECT AVG(mean_cost) AS mean FROM (
  SELECT AVG(cost) AS mean_cost FROM visits WHERE cost IS NOT NULL GROUP BY patient_id
) AS each;

-- name: per_patient_remainder_of_an_average
-- bounds: r=0:100
SELECT AVG(r) AS mean
FROM (SELECT 100 % AVG(age) AS r FROM visits GROUP BY patient_id) AS each;

-- name: count_of_a_condition
SELECT COUNT(age > 50) AS n, COUNT(cost > 100) AS n_cost FROM visits;

-- name: group_by_equality
SELECT ward = 'surgery' AS operated, COUNT(*) AS n FROM visits GROUP BY operated;

-- name: sum_of_if
SELECT SUM(IF(urgent, 1, 0)) AS n FROM visits;

-- name: group_by_floor
-- keys: decade=0..9
SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY decade;

-- name: join_public_naturally
SELECT COUNT(*) AS n, COUNT(DISTINCT patient_id) AS n_patients FROM visits NATURAL JOIN wards;

-- name: median_of_cost
SELECT MEDIAN(cost) AS q_cost FROM visits;

-- name: median_by_ward
SELECT ward, MEDIAN(cost) AS q_cost, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward;

-- name: quartiles
SELECT QUANTILE_CONT(cost, 0.25) AS q_25, MEDIAN(cost) AS q_50, QUANTILE_CONT(cost, 0.75) AS q_75
FROM visits;

-- name: percentiles_within_group
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY cost) AS q_90,
       PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY age) AS q_10
FROM visits WHERE cost IS NOT NULL;

-- name: percentile_from_above
SELECT urgent, PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age DESC) AS q_old
FROM visits GROUP BY urgent;

-- name: quantile_filtered
SELECT ward, QUANTILE_DISC(age, 0.45) FILTER (WHERE urgent) AS q_age FROM visits GROUP BY ward;

-- name: median_of_an_expression
SELECT MEDIAN(cost / 10 + 3) AS q_less, MEDIAN(CASE WHEN urgent THEN cost END) AS q_urgent
FROM visits;

-- name: median_per_patient
-- bounds: visits=0:100
SELECT MEDIAN(visits) AS q_visits
FROM (SELECT COUNT(*) AS visits, MAX(age) AS age FROM visits GROUP BY patient_id) AS each
WHERE age > 20;

-- name: least_and_greatest_age
SELECT MIN(age) AS q_least, MAX(age) AS q_greatest FROM visits;

-- name: least_and_greatest_cost
SELECT MIN(cost) AS q_least, MAX(cost) AS q_greatest FROM visits;

-- name: greatest_age_by_ward
SELECT ward, MAX(age) AS q_age, MIN(age) AS q_youngest FROM visits GROUP BY ward HAVING COUNT(*) > 100;

-- name: correlation
SELECT CORR(cost, age) AS r, CORR(age, age * 2 + cost / 10) AS r_strong FROM visits;

-- name: covariance_by_urgency
SELECT urgent, COVAR_POP(age, age + cost / 50) AS c, COVAR_SAMP(age, age * 3) AS cs
FROM visits GROUP BY urgent;

-- name: rollup_of_counts
SELECT ward, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, urgent);

-- name: rollup_of_means
SELECT ward, urgent, AVG(cost) AS mean, SUM(cost) AS total, COUNT(DISTINCT patient_id) AS n
FROM visits GROUP BY ROLLUP (urgent, ward);

-- name: cube_of_counts
SELECT ward, urgent, COUNT(*) AS n, GROUPING(ward) AS all_wards FROM visits
GROUP BY CUBE (ward, urgent) ORDER BY all_wards, ward, urgent;

-- name: grouping_sets
SELECT ward, urgent, SUM(age) AS years FROM visits
GROUP BY GROUPING SETS ((ward), (urgent), ()) HAVING SUM(age) > 0;

-- name: top_wards
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2;

-- name: sizes_of_values_by_patient
-- keys: cell=-190..190
SELECT cell, COUNT(*) AS n FROM (
SELECT patient_id, MAX(cell) AS cell FROM (SELECT patient_id,
CASE WHEN (cost - 100.5) > 0 THEN GREATEST(1, LEAST(190, CAST(FLOOR(LN((cost - 100.5)) * 2.8853900817779268) AS BIGINT) + 65)) WHEN (cost - 100.5) < 0 THEN -GREATEST(1, LEAST(190, CAST(FLOOR(LN(-(cost - 100.5)) * 2.8853900817779268) AS BIGINT) + 65)) WHEN (cost - 100.5) = 0 THEN 0 END AS cell
FROM visits) AS cells GROUP BY patient_id) AS ends GROUP BY cell;
