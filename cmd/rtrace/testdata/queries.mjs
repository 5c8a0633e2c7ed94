// Runs SQL with DuckDB: reads {"setup": SQL, "queries": {NAME: SQL}} from standard input
// and prints {NAME: rows}, with each value as a text.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.argv[2] + '/');
const { DuckDBInstance } = await import(pathToFileURL(require.resolve('@duckdb/node-api')));
const { setup, queries } = JSON.parse(readFileSync(0, 'utf8'));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
await connection.run(setup);
const answers = {};
for (const [name, sql] of Object.entries(queries)) {
  const reader = await connection.runAndReadAll(sql);
  answers[name] = reader.getRows().map((row) => row.map((value) => String(value)));
}
console.log(JSON.stringify(answers));
