/** The service's information about itself: health, configuration, the caller's identity, templates. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SCOPES } from "../../../shared/api/contract.ts";
import { TOOLS } from "../../../shared/api/mcp/tools.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey } from "../calls.ts";
import { OPERATIONS } from "../requests.ts";
import { describeTemplate } from "../sandboxes/described-template.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

test("the daemon is the started process itself, with the settings that its runtime reads at startup", () => {
  const variables = readFileSync(`/proc/${daemon.pid}/environ`, "utf8").split("\0");
  expect(variables.filter((line) => line.startsWith("BUN_GC_TIMER_INTERVAL="))).toEqual([
    "BUN_GC_TIMER_INTERVAL=60000",
  ]);
});

describe("/health", () => {
  test("without a key reports the status, without reasons", async () => {
    const before = Date.now();
    const { status, headers, body } = await bare(daemon, "GET", "/health");
    expect(status).toBe(503);
    expect(headers.get("content-type")).toBe("application/json");
    expect(Object.keys(body).sort()).toEqual(
      [
        "status",
        "topology",
        "ready",
        "version",
        "api_versions",
        "acceleration",
        "uptime_seconds",
        "time",
        "checks",
      ].sort(),
    );
    expect(body).toMatchObject({
      status: "unavailable",
      ready: false,
      topology: "emulated",
      acceleration: "tcg",
      api_versions: ["v1"],
      uptime_seconds: expect.any(Number),
    });
    expect(Date.parse(body.time)).toBeGreaterThanOrEqual(before);
    for (const check of body.checks) expect(Object.keys(check)).toEqual(["id", "status"]);
    expect(body.checks).toContainEqual({ id: "templates", status: "fail" });
  });

  test("with a key also reports reasons, remedies, and free capacity", async () => {
    const { body } = await daemon.api("GET", "/health");
    for (const check of body.checks) {
      expect(check.message).toMatch(/\.$/);
      if (check.status !== "ok") expect(check.remedy).toMatch(/\.$/);
    }
    expect(body.capacity).toEqual({ memory_mib_free: expect.any(Number), guest_cids_free: 900 });
  });

  test("with an invalid key answers as without one", async () => {
    for (const key of ["key-none", daemon.operatorKey]) {
      const { status, body } = await bare(daemon, "GET", "/health", bearer(key));
      expect(status).toBe(503);
      expect(body.capacity).toBeUndefined();
    }
  });

  test("to HEAD answers without a body", async () => {
    const get = await bare(daemon, "GET", "/health");
    const head = await bare(daemon, "HEAD", "/health");
    expect(head).toMatchObject({ status: get.status, body: "" });
    expect(head.headers.get("content-type")).toBe("application/json");
  });

  test("has the checks of `roomd doctor`", async () => {
    const { body } = await daemon.api("GET", "/health");
    const doctor = await daemon.cli(["doctor", "--json"]);
    const ids = (checks: Json) => checks.map(({ id }: Json) => id);
    const report: Json = JSON.parse(doctor.stdout);
    expect(ids(report.checks ?? report)).toEqual(ids(body.checks));
    expect(doctor.status).not.toBe(0);
  });
});

const FIRST_EXTENSIONS = [
  ...["drive.files", "drive.stat", "drive.mkdir", "drive.move", "drive.delete", "sandbox.metrics", "sandbox.standby"],
  ...["executions", "terminals", "ssh", "messages", "barriers", "egress", "ports", "usage.group_by", "audit.export"],
];

describe("/v1/config", () => {
  test("has limits, defaults, guarantees and non-guarantees", async () => {
    const config = await daemon.ok("GET", "/v1/config");
    expect(config).toMatchObject({
      version: (await daemon.ok("GET", "/v1/openapi.json")).info.version,
      limits: {
        guest_cid_min: 9100,
        guest_cid_max: 9999,
        memory_mib_min: 128,
        drive_write_bytes_max: 16 * 1024 * 1024,
        execution_kept_disk_bytes_per_sandbox: 1024 ** 3,
        execution_names_kept_per_sandbox: 65_536,
        ssh_keys_per_organization_max: 256,
        ssh_accesses_per_sandbox_max: 64,
      },
      defaults: { template_id: "default", vcpu_count: 1, exec_timeout_ms: 600_000, list_limit: 100 },
      templates: [],
    });
    for (const promise of [...config.guarantees, ...config.non_guarantees]) expect(promise).toMatch(/^\S.*\.$/);
    expect(config.non_guarantees.join(" ")).toContain("not audited");
    // An append is visible while it grows: only a write without append is atomic; both lists state that.
    for (const list of [config.guarantees, config.non_guarantees]) expect(list.join(" ")).toMatch(/\bappend/);
  });

  test("lists every extension beyond the tools, and never drops one", async () => {
    const { api_extensions: extensions } = await daemon.ok("GET", "/v1/config");
    const ofTools = [...TOOLS.values()].map(({ operation }) => operation);
    const beyond = OPERATIONS.filter((operation) => !ofTools.includes(operation));
    expect(beyond.length).toBeGreaterThan(50);
    expect(beyond.filter(({ extension }) => extension === undefined).map(({ name }) => name)).toEqual([]);
    expect(extensions).toEqual([...new Set(OPERATIONS.flatMap(({ extension = [] }) => extension))]);
    for (const extension of FIRST_EXTENSIONS) expect(extensions).toContain(extension);
  });

  test("has effective limits: one more is refused", async () => {
    const { limits } = await daemon.ok("GET", "/v1/config");
    const { list_limit_max: page, body_bytes_max: size } = limits;
    expect((await daemon.api("GET", `/v1/rooms?limit=${page}`)).status).toBe(200);
    expect((await daemon.api("GET", `/v1/rooms?limit=${page + 1}`)).status).toBe(422);
    const body = (bytes: number) => {
      const rest = JSON.stringify({ room_id: "no name", labels: { a: "" } }).length;
      return { room_id: "no name", labels: { a: "a".repeat(bytes - rest) } };
    };
    expect((await daemon.api("POST", "/v1/rooms", body(size))).status).toBe(422);
    expect((await daemon.api("POST", "/v1/rooms", body(size + 1))).status).toBe(413);
  });

  test("has this host's configuration", async () => {
    const env = { ROOMD_LIMITS_MEMORY_MIB: "777", ROOMD_LIMITS_VCPUS: "3", ROOMD_DRIVE_LIMIT_GIB: "2" };
    const other = await TestDaemon.start({
      env: { ...env, ROOMD_DRIVE_RETENTION: "7d", ROOMD_EGRESS_DEFAULT: "none", ROOMD_TERMINAL_DETACHED_LIFE: "3m" },
    });
    try {
      const { limits, defaults } = await other.ok("GET", "/v1/config");
      expect(limits).toMatchObject({ memory_mib_max: 777, vcpu_count_max: 3, drive_bytes_max: 2 * 1024 ** 3 });
      expect(limits.terminal_detached_seconds).toBe(180);
      expect(defaults).toMatchObject({
        drive_retention_seconds: 7 * 86_400,
        egress: "none",
        audit_retention_seconds: 90 * 86_400,
      });
      expect((await other.room("r")).drive.limit_bytes).toBe(2 * 1024 ** 3);
    } finally {
      await other.stop();
    }
  });
});

describe("/v1/me", () => {
  test("of the first key has all permissions in its organization", async () => {
    expect(await daemon.ok("GET", "/v1/me")).toEqual({
      org_id: daemon.orgId,
      plan: "free",
      key_id: expect.stringMatching(/^kid_/),
      name: "first",
      scopes: [...SCOPES],
      room_ids: null,
      agent_id: null,
      expires_at: null,
    });
  });

  test("of a narrow key has its restrictions", async () => {
    const { key, key_id } = await makeKey(daemon, {
      scopes: ["rooms:read", "exec"],
      rooms: ["a", "b"],
      expires_in_seconds: 3600,
    });
    const me = (await daemon.api("GET", "/v1/me", undefined, bearer(key))).body;
    expect(me).toMatchObject({ key_id, name: "test", scopes: ["rooms:read", "exec"], room_ids: ["a", "b"] });
    const left = Date.parse(me.expires_at) - Date.now();
    expect(left).toBeGreaterThan(3_590_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
  });
});

describe("templates", () => {
  test("are empty at first, and an unknown one in a path is 404", async () => {
    expect(await daemon.ok("GET", "/v1/templates")).toEqual({ items: [], next_cursor: null });
    for (const id of ["default", "..", "%2e%2e", "a%2Fb", "a%00b", "x".repeat(300)]) {
      const problem = await daemon.problem("GET", `/v1/templates/${id}`);
      expect([id, problem.status]).toEqual([id, 404]);
    }
    expect((await daemon.problem("GET", "/v1/templates/none")).code).toBe("template_not_found");
  });

  test("are listed as soon as they exist, without host-internal fields", async () => {
    const record = { ...describeTemplate(daemon, "tools"), visibility: "host" };
    expect(await daemon.ok("GET", "/v1/templates")).toEqual({ items: [record], next_cursor: null });
    expect(await daemon.ok("GET", "/v1/templates/tools")).toEqual(record);
    expect((await daemon.ok("GET", "/v1/config")).templates).toEqual([record]);
    expect((await daemon.ok("GET", "/health")).checks).toContainEqual(
      expect.objectContaining({ id: "templates", status: "ok" }),
    );
  });
});
