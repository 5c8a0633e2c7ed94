// Stands for DuckDB's program, with its library for node: duckdb -init FILE -c SQL. It prints the rows
// as JSON, with each value as a text. The first argument is the folder of the library.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, init, file, command, sql, ...more] = process.argv.slice(2);
if (init !== '-init' || command !== '-c' || sql === undefined || more.length) throw new Error('usage: duckdb -init FILE -c SQL');
const require = createRequire(folder + '/');
const { DuckDBInstance } = await import(pathToFileURL(require.resolve('@duckdb/node-api')));
const connection = await (await DuckDBInstance.create(':memory:')).connect();
await connection.run(readFileSync(file, 'utf8'));
const reader = await connection.runAndReadAll(sql);
console.log(JSON.stringify(reader.getRows().map((row) => row.map((value) => String(value)))));
