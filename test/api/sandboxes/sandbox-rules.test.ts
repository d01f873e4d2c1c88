/** Validation of a request for a sandbox: the rules that need no guest, with the error code of each violation alone. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { DESCRIBED_BASE_MIB, DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

const PATH = "/v1/rooms/r/sandboxes/from-template";
const GOOD = { agent_id: "worker-1", guest_cid: 9100, memory_mib: 512 };
let daemon: TestDaemon;
let limits: Json;

beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
  await daemon.room("r");
});
afterAll(() => daemon.stop());

const refused = (change: Json) =>
  daemon.problem("POST", PATH, typeof change === "string" ? change : { ...GOOD, ...change });

test("without templates every create is refused, with the list of available ones", async () => {
  const problem = await refused({});
  expect(problem).toMatchObject({ status: 422, code: "template_not_found", details: { available: [] } });
  expect(problem.errors.map(({ field }) => field)).toEqual(["template_id"]);
  // Together with the other errors.
  const more = await refused({ guest_cid: 9099 });
  expect(more.code).toBe("validation_failed");
  expect(more.errors.map(({ field }) => field).sort()).toEqual(["guest_cid", "template_id"]);
});

describe("with a template", () => {
  beforeAll(async () => {
    describeTemplate(daemon);
    limits = (await daemon.ok("GET", "/v1/config")).limits;
  });

  test("an unknown one is refused with the list of available ones", async () => {
    expect(await refused({ template_id: "other" })).toMatchObject({
      status: 422,
      code: "template_not_found",
      details: { available: ["default"] },
    });
  });

  test.each([9099, 10_000, 0, -1, 4_294_967_295])("guest_cid %i is out of range", async (guest_cid) => {
    const problem = await refused({ guest_cid });
    expect(problem).toMatchObject({ status: 422, code: "guest_cid_out_of_range" });
    expect(problem.errors).toMatchObject([{ field: "guest_cid", code: "out_of_range", min: 9100, max: 9999 }]);
  });

  test.each(["9100", null, 9100.5, true, [9100], {}])("guest_cid %j is not an integer", async (guest_cid) => {
    expect(await refused({ guest_cid })).toMatchObject({
      status: 422,
      code: "validation_failed",
      errors: [{ field: "guest_cid", code: "wrong_type" }],
    });
  });

  test.each([0, 127, -1, 1_000_000_000])("memory_mib %i is out of range", async (memory_mib) => {
    const problem = await refused({ memory_mib });
    expect(problem).toMatchObject({ status: 422, code: "memory_mib_out_of_range" });
    expect(problem.errors).toMatchObject([
      { field: "memory_mib", code: "out_of_range", min: 128, max: limits.memory_mib_max },
    ]);
    expect(problem.detail).toMatch(new RegExp(`\\b128\\b.*\\b${limits.memory_mib_max}\\b`));
    // The template's requirement is part of the first refusal.
    expect(problem.detail).toMatch(new RegExp(`\\bdefault\\b.*\\b${DESCRIBED_MIN_MIB}\\b`));
  });

  test("memory_mib is limited to the maximum that the template was saved for", async () => {
    describeTemplate(daemon, "small", { maxPluggedMib: 512 - DESCRIBED_BASE_MIB });
    for (const memory_mib of [513, 127]) {
      const problem = await refused({ template_id: "small", memory_mib });
      expect(problem).toMatchObject({
        code: "memory_mib_out_of_range",
        errors: [{ field: "memory_mib", code: "out_of_range", min: 128, max: 512 }],
      });
      expect(problem.detail).toMatch(/\bsmall\b/);
    }
    const atMost = await refused({ template_id: "small", memory_mib: 512, guest_cid: 9099 });
    expect(atMost.errors.map(({ field }) => field)).toEqual(["guest_cid"]);
    await rm(join(daemon.dataDir, "templates", "small"), { recursive: true });
  });

  test("memory_mib is limited by the host, as in /v1/config, and by the template's minimum", async () => {
    expect(await refused({ memory_mib: limits.memory_mib_max + 1 })).toMatchObject({
      code: "memory_mib_out_of_range",
      errors: [{ min: 128, max: limits.memory_mib_max }],
    });
    expect(await refused({ memory_mib: DESCRIBED_MIN_MIB - 1 })).toMatchObject({
      status: 422,
      code: "memory_below_template_minimum",
      errors: [{ field: "memory_mib", min: DESCRIBED_MIN_MIB }],
    });
  });

  test("vcpu_count is limited to the host's cores", async () => {
    for (const vcpu_count of [0, limits.vcpu_count_max + 1]) {
      expect(await refused({ vcpu_count })).toMatchObject({
        status: 422,
        errors: [{ field: "vcpu_count", code: "out_of_range" }],
      });
    }
  });

  test.each(["sbx_1", "", "-a", "a b", "a/b", "a\nb", "x".repeat(129)])("agent_id %j is invalid", async (agent_id) => {
    expect(await refused({ agent_id })).toMatchObject({
      status: 422,
      errors: [{ field: "agent_id", code: "pattern" }],
    });
  });

  test.each(["{", "[1]", "null", '"x"', '{"A":1}', '{"A":{"B":"c"}}', '{"1A":"x"}', '{"A=B":"x"}', '{"":"x"}'])(
    "env_json %s is invalid",
    async (env_json) => {
      const { status, code, errors } = await refused({ env_json });
      expect({ status, code }).toEqual({ status: 422, code: "invalid_env_json" });
      expect(errors).toHaveLength(1);
      expect(errors[0]?.field).toMatch(/^env/);
    },
  );

  test("env is limited, and cannot set roomd's own names", async () => {
    const names = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`V${index}`, "x"]));
    expect((await refused({ env: names(129) })).code).toBe("invalid_env_json");
    expect((await refused({ env: { A: "x".repeat(32 * 1024 + 1) } })).code).toBe("invalid_env_json");
    const large = Object.fromEntries(["A", "B", "C", "D", "E"].map((name) => [name, "x".repeat(30_000)]));
    expect((await refused({ env: large })).code).toBe("invalid_env_json");
    expect((await refused({ env: { A: "a\0b" } })).code).toBe("invalid_env_json");
    expect(await refused({ env: { ROOMD_URL: "x" } })).toMatchObject({
      status: 422,
      code: "reserved_env_key",
      errors: [{ field: "env.ROOMD_URL" }],
    });
    expect((await refused({ env_json: '{"ROOMD_X":"x"}' })).code).toBe("reserved_env_key");
  });

  test("x and x_json are mutually exclusive", async () => {
    expect(await refused({ env: {}, env_json: "{}" })).toMatchObject({
      status: 422,
      code: "conflicting_fields",
      errors: [{ field: "env_json" }],
    });
    const both = { egress_allowlist: [], egress_allowlist_json: "[]" };
    expect(await refused(both)).toMatchObject({
      code: "conflicting_fields",
      errors: [{ field: "egress_allowlist_json" }],
    });
  });

  test.each([
    "http://example.org",
    "example.org/path",
    "127.0.0.1",
    "127.9.9.9:80",
    "[::1]:443",
    "169.254.169.254",
    "224.0.0.1",
    "0.0.0.0",
    "10.0.0.0/33",
    "*.org",
    "*.co.uk",
    "*.github.io",
    "**",
    "0x7f.1",
    "2130706433",
    "127.1",
    "fe80::1",
    "::ffff:127.0.0.1",
    "localhost",
    "a.localhost",
    "example.org:0",
    "example.org:65536",
    "exa mple.org",
    "",
    "-a.org",
    "a,b",
    "example.org\nb",
  ])("egress entry %j is refused by its index", async (entry) => {
    const problem = await refused({ egress_allowlist: ["example.org", entry] });
    expect(problem).toMatchObject({ status: 422, code: "invalid_egress_entry" });
    expect(problem.errors.map(({ field }) => field)).toEqual(["egress_allowlist[1]"]);
  });

  test("an invalid egress list is refused by the name of the field as sent", async () => {
    for (const egress_allowlist_json of ["{", "{}", "[1]", "null"]) {
      const { code, errors } = await refused({ egress_allowlist_json });
      expect(code).toBe("invalid_egress_entry");
      expect(errors[0]?.field).toMatch(/^egress_allowlist_json/);
    }
  });

  test("all invalid fields are reported together", async () => {
    const all = {
      agent_id: "sbx_x",
      guest_cid: 9099,
      memory_mib: 0,
      vcpu_count: 0,
      template_id: "none",
      env: { "A B": "x", ROOMD_X: "x" },
      egress_allowlist: ["127.0.0.1"],
      labels: { "": "x" },
      idle_timeout_seconds: 0,
      max_duration_seconds: "1",
      attach_fabric: "yes",
      unknown: 1,
    };
    const { code, errors } = await refused(all);
    expect(code).toBe("validation_failed");
    expect(errors.map(({ field }) => field).sort()).toEqual([
      "agent_id",
      "attach_fabric",
      "egress_allowlist[0]",
      "env.A B",
      "env.ROOMD_X",
      "guest_cid",
      "idle_timeout_seconds",
      "labels.",
      "max_duration_seconds",
      "memory_mib",
      "template_id",
      "unknown",
      "vcpu_count",
    ]);
  });

  test.each([
    ["wait=later", "wait"],
    ["wait_timeout_ms=60001", "wait_timeout_ms"],
    ["wait_timeout_ms=-1", "wait_timeout_ms"],
    ["wait_timeout_ms=soon", "wait_timeout_ms"],
  ])("the query %s is refused", async (query, field) => {
    expect(await daemon.problem("POST", `${PATH}?${query}`, GOOD)).toMatchObject({ status: 422, errors: [{ field }] });
  });

  test("no refused create leaves anything", async () => {
    expect((await daemon.ok("GET", "/v1/rooms/r/sandboxes")).items).toEqual([]);
    expect((await daemon.ok("GET", "/health")).capacity.guest_cids_free).toBe(900);
    expect(daemon.log).not.toContain('"level":"error"');
  });
});
