/**
 * Owns the one PostgreSQL server of a run in which every daemon is a host of a service of several: ROOMD_TEST_CLUSTER=1. Each daemon has a
 * database of its own there.
 */
import { Postgres } from "./postgres.ts";

/** Before the first test; what is returned is called after the last. */
export default async function start(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.ROOMD_TEST_CLUSTER !== "1") return undefined;
  const server = await Postgres.start({ settings: { fsync: "off", max_connections: "200" } });
  process.env.ROOMD_TEST_CLUSTER_URL = server.url("tcp");
  return () => server[Symbol.asyncDispose]();
}
