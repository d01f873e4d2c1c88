/** Current resource use of sandboxes, compared with their known activity; and the lifecycle counters of /metrics. */
import { expect, test } from "vitest";
import { parseMetrics } from "../../harness/clients/exposition.ts";
import type { Json } from "../../harness/daemon.ts";
import { until, withGuests } from "../../harness/guests.ts";

withGuests("current usage", {}, (guests) => {
  const top = async (...args: string[]): Promise<Record<string, Json>> => {
    const { stdout } = await guests.daemon.cli(["top", "--json", "--interval", "2s", ...args]);
    return Object.fromEntries(JSON.parse(stdout).items.map((item: Json) => [item.agent_id, item]));
  };
  const metric = async (name: string, labels: Record<string, string> = {}) => {
    const samples = parseMetrics(await (await fetch(`${guests.daemon.url}/metrics`)).text());
    const meant = samples.filter((sample) => sample.name === name && Bun.deepMatch(labels, sample.labels));
    return meant.reduce((sum, { value }) => sum + value, 0);
  };

  test("is reported for each sandbox: computing, writing, paused and ended", async () => {
    const { daemon } = guests;
    await daemon.room("t");
    for (const agent of ["busy", "idle"]) await daemon.sandbox("t", agent, guests.cid());
    const exec = (agent: string, command: string) =>
      daemon.ok("POST", `/v1/rooms/t/sandboxes/${agent}/exec`, { command, timeout_ms: 60_000 });
    const before = await top();
    await exec("busy", "head -c 64M /dev/urandom >/root/file && sync");
    await daemon.ok("POST", "/v1/rooms/t/sandboxes/busy/executions", { command: "while :; do :; done" });
    const { busy, idle } = await top();
    expect(busy).toMatchObject({ room_id: "t", state: "running", memory: { memory_mib: 256 } });
    expect(busy.cpu_percent).toBeGreaterThan(20);
    expect(busy.cpu_percent).toBeGreaterThan(idle.cpu_percent);
    expect(busy.disk.used_bytes - before.busy.disk.used_bytes).toBeGreaterThan(60 * 1024 ** 2);
    expect(busy.memory.resident_bytes).toBeGreaterThan(32 * 1024 ** 2);
    expect(busy.sent_bytes_per_second).toBe(0);

    await daemon.ok("POST", "/v1/rooms/t/sandboxes/busy/standby");
    const paused = (await top("--room", "t")).busy;
    expect(paused.state).toBe("paused");
    expect(paused.cpu_percent).toBeLessThan(5);

    expect(await metric("roomd_sandbox_start_duration_seconds_count")).toBe(2);
    expect(await metric("roomd_executions_total")).toBeGreaterThanOrEqual(2);
    expect(await metric("roomd_guest_memory_resident_bytes")).toBeGreaterThan(64 * 1024 ** 2);
    await daemon.ok("DELETE", "/v1/rooms/t/sandboxes/idle");
    await until("the end is counted", async () => (await metric("roomd_sandbox_ends_total")) === 1);
    expect(await metric("roomd_sandbox_ends_total", { cause: "user_requested" })).toBe(1);
    expect(Object.keys(await top())).toEqual(["busy"]);
  });
});
