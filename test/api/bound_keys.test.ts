/** A key that is bound to an agent: for it there is that agent's sandbox and no other, by whatever door. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { operations } from "../../shared/api/operations.ts";
import { type Json, TestDaemon } from "../harness/daemon.ts";
import { untilState } from "../harness/guests.ts";
import { SshClient, sshPort } from "../harness/ssh-client.ts";
import { bearer, makeKey } from "./calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

const SANDBOXES = "/v1/rooms/r/sandboxes";

let daemon: TestDaemon;
let bound: Record<string, string>;
let key: string;
let other: Json;

const sandbox = (agent_id: string, guest_cid: number) => ({ agent_id, guest_cid, memory_mib: DESCRIBED_MIN_MIB });

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_HOST_QEMU: "/bin/false" },
  });
  describeTemplate(daemon);
  await daemon.room("r");
  for (const [at, agent] of ["worker-1", "worker-2"].entries()) {
    // It fails, for want of a QEMU, and leaves its row.
    await daemon.api("POST", `${SANDBOXES}/from-template`, sandbox(agent, 9100 + at));
    other = await untilState(daemon, "r", agent, "failed");
  }
  ({ key } = await makeKey(daemon, { agent: "worker-1" }));
  bound = bearer(key);
});
afterAll(() => daemon.stop());

test("finds its own sandbox, by both its names, and in the list", async () => {
  const own = await daemon.api("GET", `${SANDBOXES}/worker-1`, undefined, bound);
  expect(own.status).toBe(200);
  expect((await daemon.api("GET", `${SANDBOXES}/${own.body.sandbox_id}`, undefined, bound)).status).toBe(200);
  const { body } = await daemon.api("GET", SANDBOXES, undefined, bound);
  expect(body.items.map((each: Json) => each.agent_id)).toEqual(["worker-1"]);
  expect((await daemon.ok("GET", SANDBOXES)).items).toHaveLength(2);
});

const perSandbox = Object.values(operations).filter(({ path, body }) => path.includes("{sandbox}") && body !== "bytes");

test.each(perSandbox.map(({ method, path, name }) => [name, method, path]))(
  "%s finds no other agent's sandbox",
  async (_, method, path) => {
    for (const [name, value] of [
      ["another", "worker-2"],
      ["by its id", other.sandbox_id],
      ["one that never was", "worker-3"],
    ]) {
      const place = path.replace("{room_id}", "r").replace("{sandbox}", value);
      const filled = place.replaceAll(/\{\w+\}/g, "1");
      const answer = await daemon.api(method, filled, method === "GET" ? undefined : {}, bound);
      expect([name, answer.status, answer.body.code]).toEqual([name, 404, "sandbox_not_found"]);
    }
  },
);

test("makes no other agent's sandbox", async () => {
  const refused = await daemon.api("POST", `${SANDBOXES}/from-template`, sandbox("worker-4", 9104), bound);
  expect(refused).toMatchObject({ status: 403, body: { code: "source_mismatch" } });
});

test("is no password of another agent's", async () => {
  using client = new SshClient(sshPort(daemon));
  const { status, stderr } = await client.sshByPassword("worker-2@r", key, ["true"]);
  expect(status).toBe(255);
  expect(stderr).toContain("Permission denied");
});
