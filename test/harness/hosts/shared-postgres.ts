/**
 * The shared PostgreSQL server of a run in which every daemon is a host of a cluster: ROOMD_TEST_CLUSTER=1. Each daemon has its own
 * database on it.
 */
import { Postgres } from "./postgres.ts";

/** Runs before the first test; the returned function is called after the last. */
export default async function start(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.ROOMD_TEST_CLUSTER !== "1") return undefined;
  const server = await Postgres.start({ settings: { fsync: "off", max_connections: "200" } });
  process.env.ROOMD_TEST_CLUSTER_URL = server.url("tcp");
  return () => server[Symbol.asyncDispose]();
}
