/** Executions outlive the daemon and their readers: no output is lost or duplicated, and nothing runs a second time. */
import { expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import type { Json } from "../../harness/daemon.ts";
import { bytesOf, executionsPath, readStream } from "../../harness/event-loop/streams.ts";
import { LONG, shortOrLong, until, withGuests } from "../../harness/guests.ts";

const EVERY_MS = 100;

withGuests("executions and a daemon that is killed", {}, (guests) => {
  test("every number arrives once, across two kills of the daemon and a reconnecting reader", async () => {
    const { daemon } = guests;
    const seconds = shortOrLong("seconds of output", 6, 30);
    const count = (seconds * 1000) / EVERY_MS;
    await daemon.room("kept");
    await daemon.sandbox("kept", "it", guests.cid());
    const path = executionsPath("kept", "it");
    const body = {
      exec_id: "count",
      command: `echo run >>/tmp/runs; for i in $(seq ${count}); do echo $i; sleep ${EVERY_MS / 1000}; done; exit 6`,
      timeout_ms: 120_000,
    };
    await daemon.ok("POST", path, body);
    const events: Json[] = [];
    const lines = () => bytesOf(events, "stdout").toString().trim().split("\n").length;
    let last = -1;
    const follow = async (atLine: number) => {
      const part = await readStream(daemon, `${path}/count`, {
        after: last,
        onEvent: (event) => {
          events.push(event);
          return lines() < atLine;
        },
      });
      last = part.last;
    };
    await follow(count / 6);
    for (const share of [1 / 3, 1 / 2]) {
      const reading = follow(Number.POSITIVE_INFINITY);
      await until("more output has arrived", () => lines() > count * share, 60_000);
      await daemon.restart("SIGKILL");
      await reading;
      // A repeated request returns the same run.
      expect((await daemon.api("POST", path, body)).status).toBe(200);
      await follow(count * share + 2);
    }
    await follow(Number.POSITIVE_INFINITY);
    const seqs = events.map(({ seq }) => seq).filter((seq) => seq !== undefined);
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, index) => index));
    const expected = Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");
    expect(bytesOf(events, "stdout").toString()).toBe(expected);
    expect(events.at(-1)).toMatchObject({ type: "exit", exit_code: 6 });
    expect(await daemon.sh("kept", "it", "cat /tmp/runs")).toBe("run");
  });

  test("a command whose caller was disconnected is audited once, and a repeated call gets its result", async () => {
    const { daemon } = guests;
    const body = { exec_id: "cut", command: "echo run >>/tmp/cut; echo begun >/mnt/drive/begun; sleep 3; echo done" };
    const cut = expect(daemon.exec("kept", "it", body)).rejects.toThrow();
    await until(
      "the command has started",
      async () => (await daemon.api("GET", "/v1/rooms/kept/drive/stat?path=begun")).status === 200,
    );
    await daemon.end("SIGKILL");
    await cut;
    await daemon.serve();
    const recorded = async () => {
      const { items } = await daemon.ok("GET", "/v1/rooms/kept/audit?event=exec.finished&limit=1000");
      return items.filter(({ details }: Json) => details.exec_id === "cut");
    };
    const [record] = await until("the end is recorded", async () => {
      const own = await recorded();
      return own.length > 0 && own;
    });
    expect(record).toMatchObject({ source: "reconciler", details: { exit_code: 0 } });
    expect(await daemon.exec("kept", "it", body)).toMatchObject({ exit_code: 0, stdout: "done\n" });
    expect(await daemon.sh("kept", "it", "cat /tmp/cut")).toBe("run");
    await daemon.restart("SIGKILL");
    // Once the end of this later execution is recorded, all checks after the restart are complete.
    await daemon.ok("POST", executionsPath("kept", "it"), { exec_id: "later", argv: ["true"] });
    await until("a later end is recorded", async () => {
      const { items } = await daemon.ok("GET", "/v1/rooms/kept/audit?event=exec.finished&limit=1000");
      return items.some(({ details }: Json) => details.exec_id === "later");
    });
    const sources = (await recorded()).map(({ source }: Json) => source);
    expect(sources.sort()).toEqual(["reconciler", "rest"]);
  });

  test.each([
    ["exec", "exec.sent", "sent it to the guest"],
    ["exec", "exec.done", "received its end"],
    ["executions", "exec.sent", "sent it to the guest"],
  ])(
    "%s with an Idempotency-Key runs once, although the daemon is killed at %s, when it has %s",
    async (verb, point) => {
      const { daemon } = guests;
      const name = `${verb}-${point}`;
      const path = `/v1/rooms/kept/sandboxes/it/${verb}`;
      const body = { command: `cat >>/tmp/${name}; echo ran`, stdin: "run\n" };
      const call = () => daemon.api("POST", path, body, { "idempotency-key": name });
      daemon.env[FAULT_VARIABLE] = `${point}=kill`;
      await daemon.restart();
      await expect(call()).rejects.toThrow();
      await until("the daemon has exited", () => !daemon.runs);
      delete daemon.env[FAULT_VARIABLE];
      await daemon.serve();
      const { status, body: answer } = await call();
      expect([200, 201]).toContain(status);
      const listed = await until("the execution has ended", async () => {
        const { items } = await daemon.ok("GET", executionsPath("kept", "it"));
        const own = items.filter(({ argv }: Json) => argv[2] === body.command);
        return own.length > 0 && own.every(({ state }: Json) => state === "exited") && own;
      });
      expect(listed.map(({ exec_id }: Json) => exec_id)).toEqual([answer.exec_id]);
      expect(await daemon.sh("kept", "it", `cat /tmp/${name}`)).toBe("run");
      const again = await call();
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      expect(again.body.exec_id).toBe(answer.exec_id);
      // Another key is another run.
      const other = await daemon.api("POST", path, body, { "idempotency-key": `${name}-other` });
      expect(other.body.exec_id).not.toBe(answer.exec_id);
    },
  );

  test("a finished command is retained for ten minutes, and its ID is not reused afterwards", async (context) => {
    if (!LONG) return context.skip("it takes ten minutes: ROOMD_TEST_LONG=1 runs it");
    const { daemon } = guests;
    const path = executionsPath("kept", "it");
    const body = { exec_id: "gone", command: "echo run >>/tmp/gone" };
    await daemon.ok("POST", path, body);
    const endedAt = await until("the execution has ended", async () => {
      const { finished_at } = await daemon.ok("GET", `${path}/gone`);
      return finished_at !== null && Date.parse(finished_at);
    });
    // Whatever becomes of the daemon.
    await daemon.restart();
    await Bun.sleep(endedAt + 9.5 * 60_000 - Date.now());
    expect((await readStream(daemon, `${path}/gone`)).events.at(-1)).toMatchObject({ type: "exit", exit_code: 0 });
    const goneAt = await until(
      "the execution has expired",
      async () => (await daemon.api("GET", `${path}/gone`)).status === 410 && Date.now(),
      90_000,
    );
    expect(goneAt - endedAt).toBeGreaterThanOrEqual(10 * 60_000 - 1_000);
    expect(await daemon.problem("GET", `${path}/gone/stream`)).toMatchObject({ status: 410, code: "history_gone" });
    expect(await daemon.problem("POST", path, body)).toMatchObject({ status: 410, code: "history_gone" });
    expect(await daemon.sh("kept", "it", "cat /tmp/gone")).toBe("run");
  }, 800_000);
});
