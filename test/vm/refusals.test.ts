/** Refused creates, each with its own code and nothing left behind; and the resources that the end of a sandbox frees. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Answer, Json } from "../harness/daemon.ts";
import { remainsOf, until, withGuests } from "../harness/guests.ts";

withGuests("refusals and ends", {}, (guests) => {
  const path = (room: string) => `/v1/rooms/${room}/sandboxes`;
  const create = (room: string, body: unknown, headers: Record<string, string> = {}, query = ""): Promise<Answer> =>
    guests.daemon.api("POST", `${path(room)}/from-template${query}`, body, headers);

  test("invalid input is refused with its code, and creates nothing", async () => {
    const { daemon } = guests;
    await daemon.room("bad");
    const before = daemon.leftovers();
    const good = { agent_id: "a", guest_cid: 9900, memory_mib: 256 };
    const cases: [change: Record<string, unknown> | string, code: string][] = [
      [{ guest_cid: 9099 }, "guest_cid_out_of_range"],
      [{ guest_cid: 10_000 }, "guest_cid_out_of_range"],
      [{ guest_cid: "9100" }, "validation_failed"],
      [{ memory_mib: 0 }, "memory_mib_out_of_range"],
      [{ memory_mib: 1e9 }, "memory_mib_out_of_range"],
      [{ memory_mib: 128 }, "memory_below_template_minimum"],
      [{ vcpu_count: 0 }, "validation_failed"],
      [{ vcpu_count: 4096 }, "validation_failed"],
      [{ template_id: "none" }, "template_not_found"],
      [{ template_id: "../default" }, "template_not_found"],
      [{ agent_id: "../a" }, "validation_failed"],
      [{ agent_id: "a,b=c" }, "validation_failed"],
      [{ agent_id: "a\nb" }, "validation_failed"],
      [{ agent_id: "a\0b" }, "validation_failed"],
      [{ agent_id: "sbx_a" }, "validation_failed"],
      [{ env: { ROOMD_X: "1" } }, "reserved_env_key"],
      [{ env: { "A=B": "1" } }, "invalid_env_json"],
      [{ env: { A: "x".repeat(33 * 1024) } }, "invalid_env_json"],
      [{ env_json: "{" }, "invalid_env_json"],
      [{ env: {}, env_json: "{}" }, "conflicting_fields"],
      [{ egress_allowlist: ["http://example.org/"] }, "invalid_egress_entry"],
      [{ egress_allowlist: ["127.0.0.1"] }, "invalid_egress_entry"],
      [{ memory: 256 }, "unknown_field"],
      ['{"agent_id":"a","__proto__":{"x":1},"guest_cid":9900,"memory_mib":256}', "unknown_field"],
      ['{"agent_id":', "invalid_json"],
      ["[]", "invalid_body"],
      [`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`, "validation_failed"],
    ];
    for (const [change, code] of cases) {
      const body = typeof change === "string" ? change : { ...good, ...change };
      const answer = await create("bad", body);
      const seen = typeof change === "string" ? change.slice(0, 60) : change;
      expect([seen, answer.body.code, answer.status]).toEqual([
        seen,
        code,
        /json|body/.test(code) && code !== "invalid_env_json" ? 400 : 422,
      ]);
    }
    const both = await create("bad", { agent_id: "/", guest_cid: 1, memory_mib: -1, nothing: 1 });
    expect(both.body.errors.map((error: Json) => error.field).toSorted()).toEqual([
      ...["agent_id", "guest_cid", "memory_mib", "nothing"],
    ]);
    const noTemplate = await create("bad", { ...good, template_id: "none" });
    expect(noTemplate.body.details.available).toContain("default");
    expect((await create("nowhere", good)).body.code).toBe("room_not_found");
    expect((await create("bad", good, { authorization: "" })).body.code).toBe("missing_credentials");
    expect((await create("bad", good, { authorization: `Bearer key-${"x".repeat(43)}` })).body.code).toBe(
      "invalid_api_key",
    );

    expect(daemon.leftovers()).toEqual(before);
    expect((await daemon.ok("GET", "/v1/rooms/bad")).sandbox_count).toBe(0);
    expect((await daemon.ok("GET", `${path("bad")}?state=failed`)).items).toEqual([]);
    expect((await create("bad", good)).status).toBe(201);
    await daemon.ok("DELETE", "/v1/rooms/bad?drive=delete");
  });

  test("an agent_id and a CID have one holder, which is not disclosed to other callers", async () => {
    const { daemon } = guests;
    await daemon.room("held");
    await daemon.room("other");
    const guest_cid = guests.cid();
    const { sandbox_id } = await daemon.sandbox("held", "holder", guest_cid);

    const again = await create("held", { agent_id: "holder", guest_cid: guests.cid(), memory_mib: 256 });
    expect([again.status, again.body.code]).toEqual([409, "agent_id_in_use"]);

    const made = await daemon.cli(["org", "create", "--name", "stranger", "--json"]);
    const stranger = { authorization: `Bearer ${JSON.parse(made.stdout).api_key}` };
    const room = await daemon.api("POST", "/v1/rooms", { room_id: "theirs" }, stranger);
    expect(room.status).toBe(201);

    for (const [name, headers] of [
      ["held", {}],
      ["other", {}],
      ["theirs", stranger],
    ] as const) {
      const refused = await create(name, { agent_id: "second", guest_cid, memory_mib: 256 }, headers);
      expect([refused.status, refused.body.code]).toEqual([409, "guest_cid_in_use"]);
      const suggested = refused.body.details.suggested_guest_cid;
      expect(suggested).toBeGreaterThanOrEqual(9100);
      expect(suggested).not.toBe(guest_cid);
      const text = JSON.stringify(refused.body);
      for (const secret of ["holder", sandbox_id, ...(name === "held" ? [] : ["held"])])
        expect(text).not.toContain(secret);
      if (name !== "theirs") continue;
      const taken = await create(name, { agent_id: "second", guest_cid: suggested, memory_mib: 256 }, headers);
      expect([taken.status, taken.body.guest_cid]).toEqual([201, suggested]);
    }
    expect((await daemon.api("GET", "/v1/rooms/held", undefined, stranger)).body.code).toBe("room_not_found");
    expect((await daemon.api("DELETE", "/v1/rooms/theirs?drive=delete", undefined, stranger)).status).toBe(200);
    await daemon.ok("DELETE", "/v1/rooms/held?drive=delete");
    await daemon.ok("DELETE", "/v1/rooms/other?drive=delete");
  });

  test("one of many concurrent requests for a CID gets it", async () => {
    const { daemon } = guests;
    await daemon.room("race");
    const guest_cid = guests.cid();
    const answers = await Promise.all(
      ["a", "b", "c", "d", "e", "f"].map((agent_id) => create("race", { agent_id, guest_cid, memory_mib: 256 })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409, 409]);
    await daemon.ok("DELETE", "/v1/rooms/race?drive=delete");
  });

  test("DELETE during the creation ends it, and frees its CID and agent_id immediately", async () => {
    const { daemon } = guests;
    await daemon.room("early");
    const guest_cid = guests.cid();
    const body = { agent_id: "it", guest_cid, memory_mib: 256 };
    // From when it is only a row to when its guest has long been loading.
    for (const delay_ms of [0, 100, 400]) {
      const made = await create("early", body, {}, "?wait=none");
      expect(made.status).toBe(202);
      await Bun.sleep(delay_ms);
      const destroyed = await daemon.ok("DELETE", `${path("early")}/it`);
      expect(destroyed).toEqual({ agent_id: "it", sandbox_id: made.body.sandbox_id, guest_cid, state: "destroyed" });
      expect(remainsOf(daemon, made.body.sandbox_id)).toEqual([]);
      expect(existsSync(join(daemon.dataDir, "sandboxes", made.body.sandbox_id))).toBe(false);
    }
    expect((await create("early", body)).status).toBe(201);
    expect(await daemon.sh("early", "it", "hostname")).toBe("it");

    const twice = await Promise.all([1, 2].map(() => daemon.api("DELETE", `${path("early")}/it`)));
    expect(twice.map(({ status }) => status).every((status) => status === 200 || status === 404)).toBe(true);
    expect(twice.some(({ status }) => status === 200)).toBe(true);
    expect((await daemon.problem("DELETE", `${path("early")}/it`)).code).toBe("sandbox_not_found");
    expect((await create("early", body)).status).toBe(201);
    await daemon.ok("DELETE", "/v1/rooms/early?drive=delete");
  });

  test("a sandbox ends automatically when it is idle or its time is up", async () => {
    const { daemon } = guests;
    await daemon.room("brief");
    const ended = (agent_id: string, cause: string) =>
      until(`sandbox ${agent_id} is destroyed`, async () => {
        const { items } = await daemon.ok("GET", `${path("brief")}?state=destroyed`);
        return items.find((item: Json) => item.agent_id === agent_id && item.exit?.cause === cause);
      });
    const idle = await daemon.sandbox("brief", "idle", guests.cid(), { idle_timeout_seconds: 2 });
    // A command that takes longer than the timeout is no idleness.
    expect(await daemon.sh("brief", "idle", "sleep 3; echo done")).toBe("done");
    const finishedAt = Date.now();
    const idleEnd = await ended("idle", "idle");
    expect(Date.parse(idleEnd.exit.at) - finishedAt).toBeGreaterThan(1500);

    const { created_at } = await daemon.sandbox("brief", "expired", guests.cid());
    const max_duration_seconds = Math.ceil((Date.now() - Date.parse(created_at)) / 1000) + 1;
    const expired = await daemon.ok("PATCH", `${path("brief")}/expired`, { max_duration_seconds });
    const expiredEnd = await ended("expired", "expired");
    expect(Date.parse(expiredEnd.exit.at) - Date.parse(expired.expires_at)).toBeGreaterThanOrEqual(-50);

    for (const { sandbox_id } of [idle, expired]) {
      expect((await daemon.problem("GET", `${path("brief")}/${sandbox_id}`)).code).toBe("sandbox_not_found");
      expect(remainsOf(daemon, sandbox_id)).toEqual([]);
    }
    expect(readdirSync(join(daemon.dataDir, "sandboxes"))).toEqual([]);
    await daemon.ok("DELETE", "/v1/rooms/brief?drive=delete");
  });
});
