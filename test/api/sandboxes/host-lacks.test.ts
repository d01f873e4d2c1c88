/** A create on a host that lacks a prerequisite of every guest: it fails immediately, and leaves nothing. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { describeTemplate } from "./described-template.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  const env = { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_HOST_VIRTIOFSD: "/nowhere" };
  daemon = await TestDaemon.start({ env });
  describeTemplate(daemon);
  await daemon.room("r");
});
afterAll(() => daemon.stop());

test("a create is 503 not_ready on a host without a prerequisite, leaves no record, and the CID stays free", async () => {
  const create = { agent_id: "ann", guest_cid: 9100, memory_mib: 256 };
  for (const wait of ["ready", "none"]) {
    const problem = await daemon.problem("POST", `/v1/rooms/r/sandboxes/from-template?wait=${wait}`, create);
    expect(problem).toMatchObject({ status: 503, code: "not_ready", retryable: true });
    expect(problem.detail).toContain("virtiofsd");
  }
  expect((await daemon.ok("GET", "/v1/rooms/r/sandboxes")).items).toEqual([]);
  expect((await daemon.ok("GET", "/v1/rooms/r/sandboxes?state=failed")).items).toEqual([]);
  const health = await daemon.api("GET", "/health");
  expect(health.body.capacity.guest_cids_free).toBe(900);
  expect(health.body.checks.find(({ id }: Json) => id === "virtiofsd").status).toBe("fail");
});
