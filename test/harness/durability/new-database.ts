/** Separate databases for tests, on one PostgreSQL server. */
import { randomBytes } from "node:crypto";
import pg from "pg";

/** Makes a database on the server that a URL leads to, and returns the URL of that. */
export async function newDatabase(url: string): Promise<string> {
  const name = `t${randomBytes(8).toString("hex")}`;
  const made = new URL(url);
  const client = new pg.Client({ connectionString: made.href });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  made.pathname = `/${name}`;
  return made.href;
}
