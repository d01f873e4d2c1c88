/** The room inside its guests: the API that they reach without a key, their identity, and their refused calls. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { until, withGuests } from "../../harness/guests.ts";

const ROOM = "room";
const AGENTS = ["planner", "worker", "reviewer"] as const;
const DEADLINE_MS = 100_000;

/** The examples of the template's documentation, by their language. */
const examples = Object.fromEntries(
  [...readFileSync("packaging/guest-image/room.md", "utf8").matchAll(/```(\w+)\n([\s\S]*?)```/g)].map((match) => [
    String(match[1]),
    String(match[2]),
  ]),
);

withGuests("three guests", {}, (guests) => {
  const sh = (agent: string, line: string) => guests.daemon.sh(ROOM, agent, line);
  const run = (agent: string, command: string): Promise<Json> =>
    guests.daemon.exec(ROOM, agent, { command, timeout_ms: DEADLINE_MS });
  const curl = async (agent: string, rest: string): Promise<Json> =>
    JSON.parse(await sh(agent, `curl -sS ${rest.replaceAll("@R", "$ROOMD_URL/v1/rooms/$ROOMD_ROOM_ID")}`));

  test("find their room by its name, with their own identity", async () => {
    await guests.daemon.room(ROOM);
    await Promise.all(AGENTS.map((agent, index) => guests.daemon.sandbox(ROOM, agent, 9100 + index)));
    expect(await sh("worker", "room whoami")).toBe(`worker in ${ROOM}`);
    const own = await curl("worker", "@R/sandboxes/worker");
    expect(own).toMatchObject({ agent_id: "worker", state: "running", fabric_attached: true });
    expect(await sh("planner", "printenv ROOMD_ROOM_ID ROOMD_AGENT_ID ROOMD_URL")).toBe(
      `${ROOM}\nplanner\nhttp://room.internal`,
    );
    expect((await sh("planner", "room agents")).split("\n").toSorted()).toEqual(
      AGENTS.map((agent) => `${agent} running 0`).toSorted(),
    );
  });

  test("send and receive messages, also from outside", async () => {
    await sh("worker", "room send reviewer 'look at this'");
    expect(await sh("reviewer", "room inbox")).toMatch(/^worker msg_\S+ look at this$/);
    expect(await sh("reviewer", "room inbox")).toBe("");
    const path = `/v1/rooms/${ROOM}/messages`;
    const pending = guests.daemon.ok("POST", path, {
      source: "operator",
      destination: "worker",
      payload: { n: 6 },
      wait_reply: true,
      timeout_ms: 60_000,
    });
    const [from, id, ...task] = (await sh("worker", "room wait --timeout 60")).split(" ");
    expect([from, task.join(" ")]).toEqual(["operator", '{"n":6}']);
    await sh("worker", `room reply ${id} --data 42`);
    expect((await pending).reply).toMatchObject({ source: "worker", payload: 42 });
    const { items } = await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/audit?event=message.sent&agent_id=worker`);
    expect(items[0]).toMatchObject({ source: "vsock", actor: { type: "sandbox", name: "worker" }, outcome: "success" });
  });

  test("cannot act as others or see other rooms, and attempts are audited", async () => {
    await guests.daemon.room("elsewhere");
    const post = (body: object, room = "$ROOMD_ROOM_ID") =>
      curl(
        "worker",
        `-H 'content-type: application/json' -d '${JSON.stringify(body)}' $ROOMD_URL/v1/rooms/${room}/messages`,
      );
    const forged = await post({ source: "planner", destination: "reviewer", payload: "rm -rf" });
    expect(forged).toMatchObject({ status: 403, code: "source_mismatch" });
    expect(await post({ destination: "reviewer" }, "elsewhere")).toMatchObject({ status: 404, code: "room_not_found" });
    expect(await curl("worker", '"@R/messages?agent_id=planner"')).toMatchObject({
      code: "source_mismatch",
    });
    expect(await curl("worker", "@R/sandboxes/planner")).toMatchObject({ code: "source_mismatch" });
    for (const path of ["@R", "@R/sandboxes", "@R/audit", "$ROOMD_URL/v1/rooms"]) {
      expect(await curl("worker", path)).toMatchObject({ status: 403, code: "insufficient_scope" });
    }
    const exec = await curl(
      "worker",
      `-H 'content-type: application/json' -d '{"command":"id"}' @R/sandboxes/worker/exec`,
    );
    expect(exec).toMatchObject({ status: 403, code: "insufficient_scope" });
    expect(await curl("worker", "$ROOMD_URL/nowhere")).toMatchObject({ status: 404, code: "route_not_found" });
    const denied = await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/audit?outcome=denied&agent_id=worker`);
    expect(denied.items.map(({ event }: Json) => event)).toContain("message.sent");
    const { items } = await guests.daemon.ok("GET", "/v1/orgs/self/audit?agent_id=worker&outcome=error&event=message.");
    expect(items[0]).toMatchObject({ source: "vsock", error_code: "room_not_found", status: 404 });
    expect(await sh("reviewer", "room inbox")).toBe("");
  });

  test("transfer files of any size by the drive calls", async () => {
    await sh("worker", "head -c 3000000 /dev/urandom >/tmp/large && room drive put /tmp/large sub/large");
    const sum = await sh("worker", "sha256sum </tmp/large");
    expect(await sh("reviewer", "room drive get sub/large /tmp/got && sha256sum </tmp/got")).toBe(sum);
    expect(await sh("reviewer", "room drive ls sub")).toBe("/sub/large");
    expect((await run("reviewer", "room drive get sub/none")).stderr).toContain("path_not_found");
  });

  test("run the examples of the template's documentation", async () => {
    expect(Object.keys(examples)).toEqual(["sh", "python"]);
    const worker = run("worker", String(examples.sh));
    const result = await run("planner", `cat >/tmp/ask.py <<'END'\n${examples.python}END\npython3 /tmp/ask.py`);
    expect(result).toMatchObject({ exit_code: 0, stdout: "42\n" });
    expect(await worker).toMatchObject({ exit_code: 0, stderr: "" });
    expect(await sh("planner", "room wait --timeout 30")).toMatch(/^worker \S+ done$/);
    expect(await sh("reviewer", "cat /mnt/drive/results/*")).toBe("42");
  });

  test("pass a barrier together; the end of one breaks it for the others", async () => {
    const line = (id: string) => `room barrier ${id} --with ${AGENTS.join()} --timeout 60`;
    const passed = await Promise.all(AGENTS.map((agent) => sh(agent, line("together"))));
    expect(passed).toEqual(AGENTS.map(() => "together 1: released"));
    const left = ["planner", "reviewer"].map((agent) => run(agent, line("broken")));
    const pending = run("planner", "room request worker 'are you there' --timeout 60");
    await until("all three agents wait", async () => {
      const { items } = await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/agents`);
      return items.flatMap((item: Json) => item.waiting_on).length === 3;
    });
    await guests.daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/worker`);
    for (const each of left) {
      expect(await each).toMatchObject({ exit_code: 1, stderr: expect.stringContaining("barrier_broken") });
    }
    expect(await pending).toMatchObject({ exit_code: 1, stderr: expect.stringContaining("agent_unavailable") });
  });

  test("have no access to the room when detached from it", async () => {
    await guests.daemon.sandbox(ROOM, "loner", 9110, { attach_fabric: false });
    expect((await run("loner", "room whoami")).exit_code).toBe(127);
    expect((await run("loner", "curl -sS --max-time 5 http://127.0.0.80/v1/me")).exit_code).not.toBe(0);
    expect(await sh("loner", "printenv ROOMD_URL || echo none")).toBe("none");
    const send = await guests.daemon.problem("POST", `/v1/rooms/${ROOM}/messages`, {
      source: "a",
      destination: "loner",
    });
    expect(send.code).toBe("agent_not_found");
  });
});
