import { afterAll, beforeAll, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections } from "../../../daemon/cluster/connections.ts";
import { accept, invite } from "../../../daemon/cluster/invitation.ts";
import { makeSchema } from "../../../daemon/cluster/schema.ts";
import { Postgres } from "../../harness/hosts/postgres.ts";

let server: Postgres;
let connections: Connections;

beforeAll(async () => {
  server = await Postgres.start({ settings: { fsync: "off" } });
  connections = new Connections({ addresses: readAddresses(server.url("tcp")) });
  await connections.transaction(makeSchema, 5000);
}, 60_000);

afterAll(async () => {
  connections?.close();
  await server?.[Symbol.asyncDispose]();
});

const SECRETS = { port_token_key: Buffer.from("of all hosts").toString("base64") };
const invited = () => connections.transaction((run) => invite(run, SECRETS), 5000);
const accepted = (token: string) => connections.transaction((run) => accept(run, token), 5000);
const NOT_GOOD = { code: "invalid_state" };

test("a token opens its sealed secrets once, and the database alone opens nothing", async () => {
  const { token } = await invited();
  const kept = await server.sql("SELECT token_sha256 || sealed FROM roomd.invitations");
  expect(kept).not.toContain(token.slice(5));
  expect(kept).not.toContain(SECRETS.port_token_key);
  expect(await accepted(token)).toEqual(SECRETS);
  await expect(accepted(token)).rejects.toMatchObject(NOT_GOOD);
});

test("an expired, truncated, foreign or forged token opens nothing", async () => {
  const { token } = await invited();
  for (const wrong of ["", token.slice(0, -1), `${token}a`, `join-${"A".repeat(43)}`, token.replace("join-", "key-")]) {
    await expect(accepted(wrong)).rejects.toMatchObject(NOT_GOOD);
  }
  await server.sql("UPDATE roomd.invitations SET expires_at = now() - interval '1 second'");
  await expect(accepted(token)).rejects.toMatchObject(NOT_GOOD);
});
