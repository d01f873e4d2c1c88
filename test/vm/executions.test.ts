/** Executions in a real guest: kept, followed from any place, never run twice, ended whole. */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { Value } from "@sinclair/typebox/value";
import { beforeAll, describe, expect, test } from "vitest";
import { executionEvent } from "../../shared/api/executions.ts";
import type { Json } from "../harness/daemon.ts";
import { bytesOf, executionsPath, readStream } from "../harness/event-loop/streams.ts";
import { shortOrLong, until, withGuests } from "../harness/guests.ts";

const MIB = 1024 * 1024;
const ROOM = "runs";
const PATH = executionsPath(ROOM, "it");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString("base64");

withGuests("executions", {}, (guests) => {
  const start = (body: Record<string, unknown>): Promise<Json> => guests.daemon.ok("POST", PATH, body);
  const get = (id: string): Promise<Json> => guests.daemon.ok("GET", `${PATH}/${id}`);
  const stream = (id: string, options = {}) => readStream(guests.daemon, `${PATH}/${id}`, options);
  const sh = (line: string) => guests.daemon.sh(ROOM, "it", line);
  const ended = (id: string) =>
    until(`${id} has ended`, async () => {
      const record = await get(id);
      return record.state === "exited" && record;
    });
  const alive = async (pattern: string) => Number(await sh(`pgrep -c -f -x '${pattern}' || true`));

  beforeAll(async () => {
    await guests.daemon.room(ROOM);
    await guests.daemon.sandbox(ROOM, "it", guests.cid());
  });

  describe("the record", () => {
    test("has the running command and its end, and is listed", async () => {
      const started = await start({ exec_id: "first", command: "echo out; echo err >&2; exit 3", cwd: "/tmp" });
      expect(started).toMatchObject({ exec_id: "first", state: "running", cwd: "/tmp", user: "root", exit_code: null });
      expect(await ended("first")).toMatchObject({
        state: "exited",
        argv: ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"],
        ...{ exit_code: 3, signal: null, timed_out: false, stdout_bytes: 4, stderr_bytes: 4, output: null },
      });
      const second = await start({ argv: ["sleep", "60"] });
      expect(second.exec_id).toMatch(/^exe_/);
      const { items } = await guests.daemon.ok("GET", PATH);
      expect(items.map(({ exec_id }: Json) => exec_id)).toEqual(["first", second.exec_id]);
      const page = await guests.daemon.ok("GET", `${PATH}?limit=1`);
      expect(page.items).toHaveLength(1);
      const rest = await guests.daemon.ok("GET", `${PATH}?limit=1&cursor=${page.next_cursor}`);
      expect([rest.items[0].exec_id, rest.next_cursor]).toEqual([second.exec_id, null]);
      expect(await guests.daemon.ok("DELETE", `${PATH}/${second.exec_id}`)).toMatchObject({ signal: "SIGTERM" });
      expect(await guests.daemon.ok("DELETE", `${PATH}/${second.exec_id}`)).toMatchObject({ signal: "SIGTERM" });
      const unknown = await guests.daemon.problem("GET", `${PATH}/nobody`);
      expect(unknown).toMatchObject({ status: 404, code: "execution_not_found" });
    });

    test("is absent for a command that cannot start", async () => {
      const refused = await guests.daemon.problem("POST", PATH, {
        exec_id: "nowhere",
        argv: ["true"],
        cwd: "/nowhere",
      });
      expect(refused).toMatchObject({ status: 422, code: "cwd_not_found" });
      expect(await guests.daemon.problem("GET", `${PATH}/nowhere`)).toMatchObject({ status: 404 });
      expect(await start({ exec_id: "nowhere", argv: ["true"], cwd: "/tmp" })).toMatchObject({ exec_id: "nowhere" });
    });
  });

  describe("the same exec_id", () => {
    test("posted 50 times concurrently, to both routes, is one run", async () => {
      const body = { exec_id: "once", command: "echo run >>/tmp/once; sleep 0.5; wc -l </tmp/once" };
      const { daemon } = guests;
      const answers = await Promise.all([
        ...Array.from({ length: 25 }, () => daemon.api("POST", PATH, body)),
        ...Array.from({ length: 25 }, () => daemon.api("POST", `/v1/rooms/${ROOM}/sandboxes/it/exec`, body)),
      ]);
      expect(answers.slice(0, 25).filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
      expect(new Set(answers.slice(0, 25).map(({ body: { exec_id } }) => exec_id))).toEqual(new Set(["once"]));
      expect(answers.slice(25).map(({ body: { stdout } }) => stdout)).toEqual(Array.from({ length: 25 }, () => "1\n"));
      expect((await daemon.exec(ROOM, "it", body)).stdout).toBe("1\n");
      expect(await sh("cat /tmp/once")).toBe("run");
    });

    test("with another body is refused, during and after the run", async () => {
      const { daemon } = guests;
      for (const path of [PATH, `/v1/rooms/${ROOM}/sandboxes/it/exec`]) {
        const refused = await daemon.problem("POST", path, { exec_id: "once", command: "echo other" });
        expect(refused).toMatchObject({ status: 409, code: "exec_id_in_use" });
      }
    });
  });

  describe("the stream", () => {
    test("has started, numbered chunks, and exit, from any position, repeatedly", async () => {
      await start({
        exec_id: "pieces",
        command: "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; echo end >&2; exit 7",
      });
      const whole = await stream("pieces");
      expect(whole.events[0]).toMatchObject({ seq: 0, type: "started", exec_id: "pieces" });
      expect(whole.events.at(-1)).toMatchObject({ type: "exit", exit_code: 7, stdout_bytes: 10, stderr_bytes: 4 });
      expect(whole.events.map(({ seq }) => seq)).toEqual(whole.events.map((_, index) => index));
      expect(whole.events.flatMap((event) => [...Value.Errors(executionEvent, event)])).toEqual([]);
      expect(bytesOf(whole.events, "stdout").toString()).toBe("1\n2\n3\n4\n5\n");
      expect(bytesOf(whole.events, "stderr").toString()).toBe("end\n");
      for (const after of [0, 2, whole.last - 1, whole.last]) {
        const part = await stream("pieces", { after, follow: after !== 2 });
        const expected = whole.events.filter(({ seq }) => seq > after || seq === whole.last);
        expect(part.events).toEqual(expected);
      }
    });

    test("is server-sent events if requested, and resumes after Last-Event-ID", async () => {
      const { daemon } = guests;
      const headers = { authorization: `Bearer ${daemon.apiKey}`, accept: "text/event-stream" };
      const first = await fetch(`${daemon.url}${PATH}/pieces/stream`, { headers });
      expect(first.headers.get("content-type")).toBe("text/event-stream");
      const blocks = (await first.text()).trim().split("\n\n");
      expect(blocks[0]).toMatch(/^id: 0\ndata: \{"seq":0,"type":"started"/);
      expect(blocks.at(-1)).toMatch(/"type":"exit"/);
      const again = await fetch(`${daemon.url}${PATH}/pieces/stream`, {
        headers: { ...headers, "last-event-id": "3" },
      });
      expect((await again.text()).trim().split("\n\n")).toEqual(blocks.slice(4));
      const head = await fetch(`${daemon.url}${PATH}/pieces/stream`, { method: "HEAD", headers });
      expect(head.status).toBe(200);
    });

    test("without follow has the events so far, and is incomplete", async () => {
      await start({ exec_id: "open", command: "echo now; sleep 60" });
      await until("the output has arrived", async () => (await get("open")).last_seq === 1);
      const now = await stream("open", { follow: false });
      expect(now.events.map(({ type }) => type)).toEqual(["started", "stdout"]);
      await guests.daemon.ok("DELETE", `${PATH}/open`);
      expect((await stream("open", { after: now.last })).events).toMatchObject([{ type: "exit", signal: "SIGTERM" }]);
    });

    test("is 410 for discarded events, and the rest is available", async () => {
      await start({ exec_id: "much", command: `head -c ${40 * MIB} /dev/zero`, timeout_ms: 120_000 });
      const { oldest_seq, last_seq } = await ended("much");
      expect(oldest_seq).toBeGreaterThan(1);
      const { daemon } = guests;
      expect(await daemon.problem("GET", `${PATH}/much/stream`)).toMatchObject({ status: 410, code: "history_gone" });
      expect(await daemon.problem("GET", `${PATH}/much/stream?after=${oldest_seq - 2}`)).toMatchObject({ status: 410 });
      const rest = await stream("much", { after: oldest_seq - 1 });
      expect(rest.events.at(-1)).toMatchObject({
        seq: last_seq + 1,
        type: "exit",
        exit_code: 0,
        stdout_bytes: 40 * MIB,
      });
      expect(bytesOf(rest.events, "stdout").length).toBeGreaterThanOrEqual(15 * MIB);
    });

    test("of a slow reader blocks the process until a faster reader arrives, and reports skipped events", async () => {
      const command = `head -c ${48 * MIB} /dev/zero`;
      await start({ exec_id: "raced", command: `sleep 1; ${command}`, timeout_ms: 120_000 });
      const leaving = new AbortController();
      const { daemon } = guests;
      const slow = await fetch(`${daemon.url}${PATH}/raced/stream`, {
        headers: { authorization: `Bearer ${daemon.apiKey}` },
        signal: leaving.signal,
      });
      const lines = slow.body?.getReader();
      await lines?.read();
      const written = () => sh("cat /proc/$(pgrep -x head)/io | grep wchar");
      const held = await until(
        "the output is held back",
        async () => {
          const { state, stdout_bytes } = await get("raced");
          if (stdout_bytes === 0) return null;
          const before = await written();
          await Bun.sleep(1_000);
          return (await written()) === before && { state, stdout_bytes };
        },
        60_000,
      );
      expect(held.state).toBe("running");
      // The bytes in transit to the reader and in its own buffers; not the 16 MiB that are retained.
      expect(held.stdout_bytes).toBeLessThan(16 * MIB);
      const { oldest_seq } = await get("raced");
      const fast = await stream("raced", { after: oldest_seq - 1 });
      expect(fast.events.at(-1)).toMatchObject({ type: "exit", stdout_bytes: 48 * MIB });
      let text = "";
      for (let part = await lines?.read(); part && !part.done; part = await lines?.read()) {
        text = (text + Buffer.from(part.value).toString("latin1")).slice(-1000);
      }
      expect(JSON.parse(text.trim().split("\n").at(-1) ?? "")).toMatchObject({ type: "error", code: "history_gone" });
      leaving.abort();
    });

    test("has large output completely", async () => {
      const size = shortOrLong("stdout in MiB", 64, 1024);
      const command = `seq 1 200000000 | head -c ${size * MIB}`;
      const began = performance.now();
      await start({ exec_id: "whole", command, timeout_ms: 3_600_000 });
      const hash = createHash("sha256");
      const { events } = await stream("whole", {
        onEvent: (event: Json) => {
          if (event.type === "stdout") hash.update(Buffer.from(event.data_b64, "base64"));
          event.data_b64 = undefined;
        },
      });
      console.log(`${size} MiB were printed, sent and read in ${Math.round(performance.now() - began)} ms`);
      expect(events.at(-1)).toMatchObject({ type: "exit", exit_code: 0, stdout_bytes: size * MIB });
      const expected = spawnSync("sh", ["-c", `${command} | sha256sum`], { encoding: "utf8" }).stdout;
      expect(`${hash.digest("hex")}  -\n`).toBe(expected);
    }, 900_000);
  });

  // These and the next side by side, since one of them is five seconds of waiting.
  describe.concurrent("standard input", () => {
    test("arrives in parts, in order, once each, and is closed on request", async () => {
      await start({ exec_id: "cat", argv: ["cat"] });
      const send = (body: Record<string, unknown>) => guests.daemon.ok("POST", `${PATH}/cat/stdin`, body);
      expect(await send({ data_b64: base64("one\n") })).toMatchObject({ stdin_bytes: 4, stdin_open: true });
      expect(await send({ data_b64: base64("one\ntwo\n"), offset: 0 })).toMatchObject({ stdin_bytes: 8 });
      expect(await send({ data_b64: base64("two\n"), offset: 4 })).toMatchObject({ stdin_bytes: 8 });
      const gap = await guests.daemon.problem("POST", `${PATH}/cat/stdin`, { data_b64: base64("x"), offset: 9 });
      expect(gap).toMatchObject({ status: 422, errors: [{ field: "offset" }] });
      expect(await send({ data_b64: base64("three"), eof: true })).toMatchObject({
        stdin_bytes: 13,
        stdin_open: false,
      });
      expect(await ended("cat")).toMatchObject({ exit_code: 0, stdout_bytes: 13 });
      expect(bytesOf((await stream("cat")).events, "stdout").toString()).toBe("one\ntwo\nthree");
      const late = await guests.daemon.problem("POST", `${PATH}/cat/stdin`, { data_b64: base64("x") });
      expect(late).toMatchObject({ status: 409, code: "invalid_state" });
    });

    test("of 8 MiB in one call arrives completely, with the start and after it", async () => {
      const bytes = randomBytes(8 * MIB);
      await start({ exec_id: "sent", argv: ["sha256sum"] });
      await guests.daemon.ok("POST", `${PATH}/sent/stdin`, { data_b64: base64(bytes), eof: true });
      await start({ exec_id: "along", argv: ["sha256sum"], stdin_b64: base64(bytes) });
      for (const id of ["sent", "along"]) {
        await ended(id);
        expect(bytesOf((await stream(id)).events, "stdout").toString()).toBe(`${sha256(bytes)}  -\n`);
      }
    });

    test("is closed immediately for a command without any", async () => {
      await start({ exec_id: "none", argv: ["cat"], stdin_open: false });
      expect(await ended("none")).toMatchObject({ exit_code: 0, stdout_bytes: 0 });
    });
  });

  describe.concurrent("the end", () => {
    test("by a signal reaches the process group", async () => {
      await start({ exec_id: "trap", command: "trap 'echo got; exit 5' INT; echo ready; while :; do sleep 0.1; done" });
      await until("the trap is set", async () => (await get("trap")).stdout_bytes > 0);
      await guests.daemon.ok("POST", `${PATH}/trap/signal`, { signal: "INT" });
      expect(await ended("trap")).toMatchObject({ exit_code: 5, signal: null });
      const late = await guests.daemon.problem("POST", `${PATH}/trap/signal`, { signal: "SIGINT" });
      expect(late).toMatchObject({ status: 409, code: "invalid_state" });
      const unknown = await guests.daemon.problem("POST", `${PATH}/trap/signal`, { signal: "SIGNOTHING" });
      expect(unknown).toMatchObject({ status: 422, errors: [{ field: "signal" }] });
    });

    test("includes processes that left their session and parent, at the timeout and at deletion", async () => {
      const flee = (seconds: number) =>
        `setsid sh -c 'sleep ${seconds} & exec sleep ${seconds}' & (env -i setsid sleep ${seconds} &); sleep ${seconds}`;
      const late = await guests.daemon.exec(ROOM, "it", { command: flee(8881), timeout_ms: 700 });
      expect(late).toMatchObject({ timed_out: true, exit_code: null });
      await until("all processes have exited", async () => (await alive("sleep 8881")) === 0);
      await start({ exec_id: "fled", command: flee(8882) });
      await until("all processes run", async () => (await alive("sleep 8882")) === 4);
      await guests.daemon.ok("DELETE", `${PATH}/fled`);
      expect(await alive("sleep 8882")).toBe(0);
      await start({ exec_id: "left", command: "setsid sleep 8883 & true" });
      await ended("left");
      expect(await alive("sleep 8883")).toBe(1);
      await guests.daemon.ok("DELETE", `${PATH}/left`);
      expect(await alive("sleep 8883")).toBe(0);
      // However soon they leave.
      const many = Array.from({ length: 16 }, (_, index) => `soon-${index}`);
      await Promise.all(
        many.map(async (exec_id) => {
          await start({ exec_id, command: "setsid sleep 8884 & true" });
          await ended(exec_id);
          await guests.daemon.ok("DELETE", `${PATH}/${exec_id}`);
        }),
      );
      expect(await alive("sleep 8884")).toBe(0);
    });

    test("is by SIGKILL after 5 s for a process that ignores SIGTERM", async () => {
      await start({ exec_id: "stubborn", command: "trap '' TERM; while :; do sleep 0.2; done" });
      await until("the process runs", async () => (await alive("/bin/sh -c trap.*")) > 0);
      const { duration_ms, signal } = await guests.daemon.ok("DELETE", `${PATH}/stubborn`);
      expect(signal).toBe("SIGKILL");
      expect(duration_ms).toBeGreaterThanOrEqual(5_000);
    });
  });

  test("saves the output completely on the drive, without any reader", async () => {
    await start({ exec_id: "saved", command: "seq 500000; echo problem >&2", output_to: "/runs/saved" });
    const record = await until("the output is saved", async () => {
      const { output } = await get("saved");
      return output.state !== "saving" && output;
    });
    const digest = (name: string) => sh(`sha256sum </mnt/drive/runs/saved/${name} | cut -d ' ' -f 1`);
    expect(record).toEqual({
      path: "/runs/saved",
      state: "saved",
      stdout: { path: "/runs/saved/stdout", size_bytes: 3388895, sha256: await digest("stdout") },
      stderr: { path: "/runs/saved/stderr", size_bytes: 8, sha256: await digest("stderr") },
      error_code: null,
    });
  });

  test("is audited once, like the start, without a secret of the command", async () => {
    const argv = ["sh", "-c", "exit 9", "--token", "s3cr3t-value", "API_KEY=s3cr3t-value"];
    await start({ exec_id: "audited", argv });
    const records = await until("both events are recorded", async () => {
      const { items } = await guests.daemon.ok("GET", `/v1/rooms/${ROOM}/audit?event=exec.&limit=1000`);
      const own = items.filter(({ details }: Json) => details.exec_id === "audited");
      return own.length >= 2 && own;
    });
    expect(records.map(({ event }: Json) => event).sort()).toEqual(["exec.finished", "exec.started"]);
    for (const record of records) {
      expect(record.details.argv).toEqual(["sh", "-c", "exit 9", "--token", "***", "API_KEY=***"]);
      expect(record.actor.type).toBe("key");
    }
    const finished = records.find(({ event }: Json) => event === "exec.finished");
    expect(finished.details).toMatchObject({ exit_code: 9, timed_out: false });
  });
});
