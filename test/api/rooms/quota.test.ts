/** Limits of an organization's plan: warnings above the soft cap, refusals above the hard cap, and both ways of changing it. */
import { Database } from "bun:sqlite";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, type Json, TestDaemon } from "../../harness/daemon.ts";
import { bearer, makeOrg, run, until } from "../calls.ts";
import { describeTemplate } from "../sandboxes/described-template.ts";

const SOFT = 2;
const HARD = 4;
let daemon: TestDaemon;

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: {
      ROOMD_ACCELERATION: "tcg",
      ROOMD_POOL_SIZE: "0",
      ROOMD_PLANS_FREE_ROOMS_SOFT_CAP: String(SOFT),
      ROOMD_PLANS_FREE_ROOMS_HARD_CAP: String(HARD),
      ROOMD_PLANS_FREE_SANDBOXES_SOFT_CAP: "0",
      ROOMD_PLANS_FREE_SANDBOXES_HARD_CAP: "0",
      ROOMD_PLANS_FREE_DRIVE_GIB_SOFT_CAP: "0",
      ROOMD_PLANS_STARTER_DRIVE_GIB_SOFT_CAP: "0",
      ROOMD_PLANS_STARTER_DRIVE_GIB_HARD_CAP: "0",
      ROOMD_PLANS_STARTER_MEMORY_MIB_SOFT_CAP: "256",
      ROOMD_PLANS_STARTER_MEMORY_MIB_HARD_CAP: "256",
      ROOMD_PLANS_STARTER_DISK_GIB_SOFT_CAP: "10",
      ROOMD_PLANS_STARTER_DISK_GIB_HARD_CAP: "10",
    },
  });
});
afterAll(() => daemon.stop());

class Org {
  readonly id: string;
  readonly #key: string;

  constructor({ org_id, api_key }: { org_id: string; api_key: string }) {
    this.id = org_id;
    this.#key = api_key;
  }

  static async named(name: string): Promise<Org> {
    return new Org(await makeOrg(daemon, name));
  }

  call(method: string, path: string, body?: unknown): Promise<Answer> {
    return daemon.api(method, path, body, bearer(this.#key));
  }

  room(room_id: string): Promise<Answer> {
    return this.call("POST", "/v1/rooms", { room_id });
  }

  async rooms(count: number): Promise<void> {
    for (let n = 0; n < count; n++) expect((await this.room(`r${n}`)).status).toBe(201);
  }

  async events(event: string): Promise<Json[]> {
    return (await this.call("GET", `/v1/orgs/self/audit?event=${event}&order=asc`)).body.items;
  }

  setPlan(plan: string): Promise<Json> {
    return run(daemon, "org", "set-plan", "--org", this.id, "--plan", plan);
  }
}

test("the caps of every plan are published, with defaults for those not configured", async () => {
  const { plans } = await daemon.ok("GET", "/v1/config");
  expect(plans.free.rooms).toEqual({ soft_cap: SOFT, hard_cap: HARD });
  expect(plans.starter).toMatchObject({
    rooms: { soft_cap: 50, hard_cap: 100 },
    sandboxes: { soft_cap: 100, hard_cap: 200 },
    drive: { soft_cap_bytes: 0, hard_cap_bytes: 0 },
  });
});

test("a soft cap above its hard cap is refused at startup, by name", async () => {
  const { status, stderr } = await daemon.cli(["serve"], undefined, { ROOMD_PLANS_STARTER_ROOMS_SOFT_CAP: "101" });
  expect(status).not.toBe(0);
  expect(stderr).toContain("plans.starter.rooms_soft_cap = 101");
});

describe("rooms", () => {
  test("above the soft cap get a warning, and each crossing is recorded once", async () => {
    const org = await Org.named("soft");
    for (let n = 1; n <= HARD; n++) {
      const { status, body } = await org.room(`r${n}`);
      expect(status).toBe(201);
      expect(body.warnings).toEqual(n <= SOFT ? [] : [expect.stringContaining(`has ${n} rooms`)]);
    }
    const [crossing, ...others] = await org.events("quota.");
    expect(others).toEqual([]);
    expect(crossing).toMatchObject({
      event: "quota.soft_exceeded",
      outcome: "success",
      room_id: `r${SOFT + 1}`,
      details: { limit: "rooms", used: SOFT + 1, cap: SOFT },
    });
    for (const name of ["r2", "r3", "r4"]) await org.call("DELETE", `/v1/rooms/${name}`);
    for (const name of ["r2", "r3"]) await org.room(name);
    expect(await org.events("quota.soft_exceeded")).toHaveLength(2);
  });

  test("above the hard cap are 429, leave nothing, and are audited; 409 takes precedence", async () => {
    const org = await Org.named("hard");
    await org.rooms(HARD);
    const before = readdirSync(join(daemon.dataDir, "rooms"));
    const { status, body, headers } = await org.room("more");
    expect(status).toBe(429);
    expect(body).toMatchObject({
      code: "quota_exceeded",
      retryable: false,
      details: { limit: "rooms", used: HARD, cap: HARD },
    });
    expect(headers.get("retry-after")).toBeNull();
    expect(readdirSync(join(daemon.dataDir, "rooms"))).toEqual(before);
    expect((await org.room("r0")).body.code).toBe("room_id_in_use");
    expect(await org.events("room.created")).toContainEqual(
      expect.objectContaining({ room_id: "more", status: 429, error_code: "quota_exceeded" }),
    );
    await org.call("DELETE", "/v1/rooms/r0");
    expect((await org.room("more")).status).toBe(201);
  });

  test("requested concurrently, fifty at a time, are created up to the cap", async () => {
    const org = await Org.named("burst");
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => org.room(`r${n}`)));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(answers.length - refused.length).toBe(HARD);
    expect(new Set(refused.map(({ body }) => body.code))).toEqual(new Set(["quota_exceeded"]));
    expect((await org.call("GET", "/v1/rooms")).body.items).toHaveLength(HARD);
    expect(await org.events("quota.soft_exceeded")).toHaveLength(1);
  });

  test("of one organization do not count for another", async () => {
    const [full, other] = [await Org.named("full"), await Org.named("empty")];
    await full.rooms(HARD);
    expect((await full.room("more")).status).toBe(429);
    expect((await other.room("more")).status).toBe(201);
  });
});

describe("sandboxes", () => {
  const create = async (org: Org) => {
    await org.room("r");
    return await org.call("POST", "/v1/rooms/r/sandboxes/from-template", {
      agent_id: "ann",
      guest_cid: 9100,
      memory_mib: 512,
    });
  };
  beforeAll(() => describeTemplate(daemon));

  test("above the cap of sandboxes are 429, and the CID stays free", async () => {
    const org = await Org.named("sandboxes");
    const { status, body } = await create(org);
    expect({ status, code: body.code, details: body.details }).toEqual({
      status: 429,
      code: "quota_exceeded",
      details: { limit: "sandboxes", used: 0, cap: 0 },
    });
    expect((await org.call("GET", "/v1/rooms/r/sandboxes")).body.items).toEqual([]);
    expect((await org.call("GET", "/health")).body.capacity.guest_cids_free).toBe(900);
    expect(existsSync(join(daemon.dataDir, "sandboxes")) ? readdirSync(join(daemon.dataDir, "sandboxes")) : []).toEqual(
      [],
    );
  });

  test("above the plan's memory are 429", async () => {
    const org = await Org.named("memory");
    await org.setPlan("starter");
    expect((await create(org)).body).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "memory_mib", used: 0, cap: 256 },
    });
  });
});

describe("disks of sandboxes", () => {
  test("above the plan's disk space are 429, by the maximal size of the template's disk", async () => {
    describeTemplate(daemon, "large", { diskGib: 20 });
    const org = await Org.named("disks");
    await org.setPlan("starter");
    await org.room("r");
    const request = { agent_id: "ann", guest_cid: 9100, memory_mib: 256, template_id: "large" };
    expect((await org.call("POST", "/v1/rooms/r/sandboxes/from-template", request)).body).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "disk_gib", used: 0, cap: 10 },
    });
    const { disk_gib } = (await org.call("GET", "/v1/orgs/self/usage")).body;
    expect(disk_gib).toEqual({ allocated: 0, soft_cap: 10, hard_cap: 10 });
  });
});

describe("drives", () => {
  const write = (org: Org, path: string) => org.call("POST", "/v1/rooms/r0/drive/write", { path, content: "x" });

  test("above the soft cap accept writes with a warning, and the crossing is recorded once", async () => {
    const org = await Org.named("written");
    await org.rooms(1);
    for (const path of ["a", "b"]) {
      const { status, body } = await write(org, path);
      expect(status).toBe(201);
      expect(body.warnings).toEqual([expect.stringContaining("drives take")]);
    }
    const put = await org.call("PUT", "/v1/rooms/r0/drive/files/c", "x");
    expect(put.body.warnings).toHaveLength(1);
    const events = await until(
      () => org.events("quota.soft_exceeded"),
      ({ length }) => length > 0,
    );
    expect(events).toMatchObject([{ details: { limit: "drive", cap: 0 } }]);
  });

  test("above the hard cap refuse writes with 429, and allow reads and deletions", async () => {
    const org = await Org.named("shut");
    await org.rooms(1);
    await write(org, "a");
    await org.setPlan("starter");
    const { status, body } = await write(org, "b");
    expect(status).toBe(429);
    expect(body).toMatchObject({
      code: "quota_exceeded",
      details: { limit: "drive", used: expect.any(Number), cap: 0 },
    });
    expect((await org.call("GET", "/v1/rooms/r0/drive/read?path=a")).body.content).toBe("x");
    expect((await org.call("DELETE", "/v1/rooms/r0/drive/delete?path=a")).status).toBe(200);
  });
});

describe("a retained drive", () => {
  const MIB = 1024 ** 2;
  const used = async (org: Org): Promise<number> =>
    (await org.call("GET", "/v1/orgs/self/usage")).body.drive.used_bytes;
  const fill = async (org: Org, room: string) => {
    await org.room(room);
    expect((await org.call("PUT", `/v1/rooms/${room}/drive/files/a`, "x".repeat(2 * MIB))).status).toBe(201);
  };

  test("counts until it is erased, also for a restarted daemon", async () => {
    const org = await Org.named("keeper");
    for (const room of ["r1", "r2"]) {
      await fill(org, room);
      await org.call("DELETE", `/v1/rooms/${room}`);
    }
    const taken = await used(org);
    expect(taken).toBeGreaterThanOrEqual(4 * MIB);
    await fill(org, "r3");
    await org.call("DELETE", "/v1/rooms/r3?drive=delete");
    expect(await used(org)).toBe(taken);
    await daemon.restart();
    expect(await used(org)).toBe(taken);
    await org.room("r4");
    await org.setPlan("starter");
    const refused = await org.call("POST", "/v1/rooms/r4/drive/write", { path: "b", content: "x" });
    expect(refused).toMatchObject({
      status: 429,
      body: { code: "quota_exceeded", details: { limit: "drive", used: taken } },
    });
    expect(refused.body.hint).toContain("drive=delete");
    await daemon.end("SIGTERM");
    {
      using database = new Database(join(daemon.dataDir, "roomd.db"));
      database.run("UPDATE rooms SET drive_until_at = created_at WHERE drive_until_at IS NOT NULL");
    }
    await daemon.serve();
    await until(
      () => used(org),
      (bytes) => bytes === 0,
    );
  });
});

describe("org set-plan", () => {
  test("raises caps immediately, also for keys used before", async () => {
    const org = await Org.named("grows");
    await org.rooms(HARD);
    expect((await org.room("more")).status).toBe(429);
    expect(await org.setPlan("starter")).toMatchObject({ org_id: org.id, plan: "starter" });
    expect((await org.room("more")).body.warnings).toEqual([]);
    expect((await org.call("GET", "/v1/me")).body.plan).toBe("starter");
    expect(await org.events("org.plan_set")).toMatchObject([
      { source: "cli", details: { plan: "starter", before: "free" } },
    ]);
  });

  test("to a smaller plan ends nothing, and prevents additions", async () => {
    const org = await Org.named("shrinks");
    await org.setPlan("starter");
    await org.rooms(HARD + 2);
    await org.setPlan("free");
    expect((await org.call("GET", "/v1/rooms")).body.items).toHaveLength(HARD + 2);
    expect((await org.room("more")).body).toMatchObject({ details: { limit: "rooms", used: HARD + 2, cap: HARD } });
    expect((await org.call("POST", "/v1/rooms/r0/drive/write", { path: "f", content: "x" })).status).toBe(201);
    for (const name of ["r0", "r1", "r2"]) await org.call("DELETE", `/v1/rooms/${name}`);
    expect((await org.room("more")).status).toBe(201);
  });

  test("accepts only existing organizations and plans", async () => {
    const org = await Org.named("stays");
    for (const args of [
      ["--org", "org_none", "--plan", "free"],
      ["--org", org.id, "--plan", "gold"],
      ["--org", org.id],
    ]) {
      expect((await daemon.cli(["org", "set-plan", ...args])).status).not.toBe(0);
    }
    expect((await org.call("GET", "/v1/me")).body.plan).toBe("free");
  });
});
