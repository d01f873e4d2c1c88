/** Creating sandboxes on real guests: the guest's view of the requested parameters, and concurrent creates. */
import { expect, test } from "vitest";
import type { Json } from "../harness/daemon.ts";
import { commandLineOf, processesOf, shortOrLong, untilState, withGuests } from "../harness/guests.ts";

const atOnce = shortOrLong("creates at once", 4, 10);

/** Every field of a sandbox's record: none is ever removed. */
const RECORD_FIELDS = [
  ...[
    "sandbox_id",
    "room_id",
    "agent_id",
    "guest_cid",
    "template_id",
    "template_digest",
    "snapshot_id",
    "lifecycle",
    "vcpu_count",
    "memory_mib",
  ],
  ...["state", "status", "exit", "env_keys", "egress", "fabric_attached", "drive_mount", "drive", "ports", "labels"],
  ...["created_at", "started_at", "ready_at", "stopped_at", "expires_at", "create_wall_ms", "boot", "start_mode"],
  "created_by",
];

withGuests("creating", {}, (guests) => {
  const path = (room: string) => `/v1/rooms/${room}/sandboxes`;

  test("the guest has the requested memory, from one template", async () => {
    const { daemon } = guests;
    await daemon.room("memory");
    const digests = new Set<string>();
    for (const memory_mib of [256, 640, 1024, 2048]) {
      const record = await daemon.sandbox("memory", `m${memory_mib}`, guests.cid(), { memory_mib });
      const line = await daemon.sh("memory", `m${memory_mib}`, "grep MemTotal /proc/meminfo");
      const seenMib = Number(/\d+/.exec(line)) / 1024;
      // Its kernel keeps some for itself: its own text, and 1/64 for the descriptions of pages.
      expect(seenMib).toBeLessThanOrEqual(memory_mib);
      expect(seenMib).toBeGreaterThan(memory_mib * (63 / 64) - 48);
      digests.add(record.template_digest);
      await daemon.ok("DELETE", `${path("memory")}/m${memory_mib}`);
    }
    expect(digests.size).toBe(1);
  });

  test("the record has every field, with the duration of each stage", async () => {
    const { daemon } = guests;
    await daemon.room("record");
    const guest_cid = guests.cid();
    const record = await daemon.sandbox("record", "whole", guest_cid, {
      labels: { role: "tester" },
      env: { SECRET: "known to nobody else", A: "1" },
      max_duration_seconds: 3600,
      egress_allowlist: ["example.org:443"],
    });
    expect(Object.keys(record).sort()).toEqual(RECORD_FIELDS.toSorted());
    expect(record).toMatchObject({
      agent_id: "whole",
      guest_cid,
      template_id: "default",
      template_digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      vcpu_count: 1,
      memory_mib: 256,
      state: "running",
      status: { reason: "ready" },
      exit: null,
      env_keys: ["A", "SECRET"],
      egress: { mode: "allowlist", allowlist: ["example.org:443"], revision: 1 },
      drive_mount: "/mnt/drive",
      ports: [],
      labels: { role: "tester" },
      stopped_at: null,
      start_mode: "snapshot",
      created_by: { type: "key" },
    });
    expect(JSON.stringify(record)).not.toContain("known to nobody else");
    const moments = [record.created_at, record.started_at, record.ready_at, record.expires_at];
    expect(moments.toSorted()).toEqual(moments);
    expect(Date.parse(record.expires_at) - Date.parse(record.created_at)).toBe(3_600_000);

    const stages: [string, number][] = Object.entries(record.boot);
    expect(stages.map(([name]) => name)).toEqual(expect.arrayContaining(["machine_ms", "load_ms", "agent_ms"]));
    expect(stages.filter(([name, ms]) => !name.endsWith("_ms") || !(ms >= 0))).toEqual([]);
    // The times that the agent reports are part of the stage `agent`.
    const own = stages.filter(([name]) => !name.startsWith("agent_") || name === "agent_ms");
    expect(own.reduce((sum, [, ms]) => sum + ms, 0)).toBeLessThanOrEqual(record.create_wall_ms + 1);
    expect(await daemon.ok("GET", `${path("record")}/whole`)).toEqual(record);
    expect(await daemon.ok("GET", `${path("record")}/${record.sandbox_id}`)).toEqual(record);
    await daemon.ok("DELETE", `${path("record")}/whole`);
  });

  test("commands get the sandbox's environment, from an object or JSON, and its IDs", async () => {
    const { daemon } = guests;
    await daemon.room("environment");
    const value = `a b'"$HOME,\n=;\\ü`;
    const record = await daemon.sandbox("environment", "object", guests.cid(), { env: { ODD: value } });
    expect(await daemon.sh("environment", "object", 'printf "%s" "$ODD"')).toBe(value);
    const own = 'printf "%s " "$ROOMD_ROOM_ID" "$ROOMD_AGENT_ID" "$ROOMD_SANDBOX_ID"';
    expect(await daemon.sh("environment", "object", own)).toBe(`environment object ${record.sandbox_id}`);
    await daemon.sandbox("environment", "json", guests.cid(), { env_json: JSON.stringify({ ODD: value }) });
    expect(await daemon.sh("environment", "json", 'printf "%s" "$ODD"')).toBe(value);
    await daemon.ok("DELETE", "/v1/rooms/environment?drive=delete");
  });

  test(`${atOnce} concurrent creates succeed, and share nothing`, async () => {
    const { daemon } = guests;
    await daemon.room("at-once");
    const names = Array.from({ length: atOnce }, (_, index) => `agent-${index}`);
    const records = await Promise.all(names.map((name) => daemon.sandbox("at-once", name, guests.cid())));
    for (const key of ["sandbox_id", "guest_cid", "agent_id"]) {
      expect(new Set(records.map((record) => record[key])).size).toBe(atOnce);
    }
    expect(await Promise.all(names.map((name) => daemon.sh("at-once", name, "hostname")))).toEqual(names);
    expect((await daemon.ok("GET", "/v1/rooms/at-once")).sandbox_count).toBe(atOnce);
    await daemon.ok("DELETE", "/v1/rooms/at-once?drive=delete");
  });

  test("no caller-supplied text reaches QEMU's command line", async () => {
    const { daemon } = guests;
    await daemon.room("lines");
    const hostile = ",server=on -monitor stdio\n--__proto__'\"$(id)";
    const records = [
      await daemon.sandbox("lines", "plain", guests.cid()),
      await daemon.sandbox("lines", "p.--x", guests.cid(), { labels: { hostile }, env: { __proto__x: hostile } }),
    ];
    // Only generated values may differ: the sandbox_id and the machine's uuid.
    const lines = records.map(({ sandbox_id }) => {
      const [qemu = 0] = processesOf(daemon, "qemu", sandbox_id);
      const argv = commandLineOf(qemu).join("\n");
      return argv.replaceAll(sandbox_id, "SANDBOX").replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID");
    });
    expect(lines[0]).toContain("guest=SANDBOX");
    expect(lines[1]).toBe(lines[0]);
    await daemon.ok("DELETE", "/v1/rooms/lines?drive=delete");
  });

  test("wait=none answers immediately, and the sandbox starts in the background", async () => {
    const { daemon } = guests;
    await daemon.room("later");
    const create = (agent_id: string, query: string) =>
      daemon.api("POST", `${path("later")}/from-template?${query}`, {
        agent_id,
        guest_cid: guests.cid(),
        memory_mib: 256,
      });
    for (const [name, query] of [
      ["none", "wait=none"],
      ["brief", "wait_timeout_ms=1"],
    ] as const) {
      const { status, body } = await create(name, query);
      expect(status).toBe(202);
      expect(["creating", "starting"]).toContain(body.state);
      expect(body).toMatchObject({ ready_at: null, create_wall_ms: null, start_mode: null });
      const ready = await untilState(daemon, "later", name, "running");
      expect(ready.sandbox_id).toBe(body.sandbox_id);
      expect(await daemon.sh("later", name, "hostname")).toBe(name);
    }
    await daemon.ok("DELETE", "/v1/rooms/later?drive=delete");
  });

  test("labels and timeouts can be changed and removed", async () => {
    const { daemon } = guests;
    await daemon.room("change");
    const { created_at } = await daemon.sandbox("change", "it", guests.cid(), { labels: { a: "1", b: "2" } });
    const change = async (body: Json) => await daemon.ok("PATCH", `${path("change")}/it`, body);
    expect((await change({ labels: { c: "3" } })).labels).toEqual({ c: "3" });
    const limited = await change({ max_duration_seconds: 600, idle_timeout_seconds: 60 });
    expect(limited.labels).toEqual({ c: "3" });
    expect(Date.parse(limited.expires_at) - Date.parse(created_at)).toBe(600_000);
    expect((await change({ max_duration_seconds: null })).expires_at).toBeNull();
    expect((await daemon.problem("PATCH", `${path("change")}/it`, { memory_mib: 512 })).code).toBe("unknown_field");
    await daemon.ok("DELETE", "/v1/rooms/change?drive=delete");
  });

  test("lists can be filtered and paged", async () => {
    const { daemon } = guests;
    await daemon.room("lists");
    for (const name of ["x", "y", "z"]) {
      await daemon.sandbox("lists", name, guests.cid(), { labels: { odd: name === "y" ? "no" : "yes" } });
    }
    await daemon.ok("DELETE", `${path("lists")}/z`);
    const names = async (query: string) =>
      (await daemon.ok("GET", `${path("lists")}?${query}`)).items.map((item: Json) => item.agent_id);
    expect(await names("")).toEqual(["x", "y"]);
    expect(await names("state=running")).toEqual(["x", "y"]);
    expect(await names("state=failed")).toEqual([]);
    expect(await names("state=destroyed")).toEqual(["z"]);
    expect(await names("label=odd:yes")).toEqual(["x"]);
    expect(await names("label=odd:yes&state=destroyed")).toEqual(["z"]);
    const first = await daemon.ok("GET", `${path("lists")}?limit=1`);
    expect(first.items.map((item: Json) => item.agent_id)).toEqual(["x"]);
    expect(await names(`limit=1&cursor=${first.next_cursor}`)).toEqual(["y"]);
    await daemon.ok("DELETE", "/v1/rooms/lists?drive=delete");
  });
});
