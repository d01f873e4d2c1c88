import { expect, test } from "vitest";
import { BINARY, problem, run, runOnTerminal, type Seen, standIn } from "../../cli-fixture.ts";

const base64 = (bytes: string | Uint8Array) => Buffer.from(bytes).toString("base64");
const EXECUTIONS = "/v1/rooms/a/sandboxes/w/executions";

const exit = (fields: Record<string, unknown> = {}) => ({
  ...{ type: "exit", seq: 99, exit_code: 0, signal: null, timed_out: false, duration_ms: 5 },
  ...fields,
});
const out = (seq: number, bytes: string | Uint8Array, type = "stdout") => ({ seq, type, data_b64: base64(bytes) });
const lines = (...events: object[]) =>
  new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""), {
    headers: { "content-type": "application/x-ndjson" },
  });

const isStream = ({ path }: Seen) => path.includes("/stream");
const startedResponse = () => Response.json({ exec_id: "e", state: "running" }, { status: 201 });

/** A service at which each stream is the next of these. */
function streaming(...streams: (() => Response)[]) {
  return standIn((seen) => {
    if (!isStream(seen)) return startedResponse();
    return streams.shift()?.() ?? problem({ status: 500, code: "internal", detail: "No more streams." });
  });
}

test("passes on the command unchanged, and its streams byte for byte", async () => {
  const bytes = new Uint8Array([0, 255, 27, 10, 128]);
  await using service = await streaming(() => lines(out(1, bytes), out(2, "oh\n", "stderr"), out(3, "more"), exit()));
  const words = ["exec", "a", "w", "--cwd", "/tmp", "--env", "K=V=W", "--user", "bob", "--timeout", "1500ms"];
  const ran = await run([...words, "--exec-id", "mine", "--", "sh", "-c", "echo --json", "--help", "--", "x"], service);
  expect(ran).toEqual({ status: 0, stdout: `${new TextDecoder().decode(bytes)}more`, stderr: "oh\n" });
  expect(service.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
    `POST ${EXECUTIONS}`,
    `GET ${EXECUTIONS}/mine/stream?after=-1&follow=true`,
  ]);
  expect(service.seen[0]?.body).toEqual({
    argv: ["sh", "-c", "echo --json", "--help", "--", "x"],
    cwd: "/tmp",
    env: { K: "V=W" },
    user: "bob",
    timeout_ms: 1500,
    exec_id: "mine",
    stdin_open: false,
  });
});

test.each([
  ["exec -it a w bash", "`roomd exec` without --tty"],
  ["shell a w", "`roomd exec` without --tty"],
  ["run -it -- bash", "leave it out, or use `roomd run --keep -- true` and then `roomd shell`"],
])("%s without a terminal names the command that works without one", async (line, advice) => {
  await using service = await standIn(() => problem({ status: 500, code: "internal", detail: "It was asked." }));
  const { status, stderr } = await run(line.split(" "), service);
  expect([status > 0, stderr]).toEqual([true, expect.stringContaining(advice)]);
  expect(service.seen).toEqual([]);
});

test.each([
  [{ exit_code: 0 }, 0],
  [{ exit_code: 7 }, 7],
  [{ exit_code: 127 }, 127],
  [{ exit_code: null, signal: "SIGKILL" }, 137],
  [{ exit_code: null, signal: "SIGTERM" }, 143],
  [{ exit_code: null, timed_out: true, signal: "SIGTERM" }, 124],
])("%j exits with %i", async (fields, status) => {
  await using service = await streaming(() => lines(exit(fields)));
  expect((await run(["exec", "a", "w", "--", "true"], service)).status).toBe(status);
  await using waited = await standIn(() => Response.json(exit(fields)));
  const json = await run(["exec", "a", "w", "--json", "--", "true"], waited);
  expect(json.status).toBe(status);
  expect(JSON.parse(json.stdout)).toEqual(exit(fields));
  expect(waited.seen[0]?.path).toBe("/v1/rooms/a/sandboxes/w/exec");
});

test("exits with 125 for every failure of roomd itself", async () => {
  await using service = await standIn(() => problem({ status: 404, code: "room_not_found", detail: "No room a." }));
  expect(await run(["exec", "a", "w", "--", "true"], service)).toEqual({
    status: 125,
    stdout: "",
    stderr: "roomd: No room a.\n",
  });
  expect((await run(["exec", "a"], service)).status).toBe(125);
  expect((await run(["execution", "attach", "a", "w", "e"], service)).status).toBe(125);
  expect((await run(["execution", "attach", "a"], service)).status).toBe(125);
  expect((await run(["execution", "get", "a", "w", "e"], service)).status).toBe(1);
  // The command's own --json is not ours.
  expect((await run(["exec", "a", "w", "--", "tool", "--json"], service)).stderr).toBe("roomd: No room a.\n");
  await using broken = await streaming(() =>
    lines(out(1, "some"), { type: "error", detail: "It is gone.", code: "x" }),
  );
  const ran = await run(["exec", "a", "w", "--", "true"], broken);
  expect(ran).toMatchObject({ status: 125, stdout: "some", stderr: expect.stringContaining("It is gone.") });
});

test("resumes from the last event if a stream ends without exit, and names its run on each request", async () => {
  await using service = await streaming(
    () => lines({ seq: 0, type: "started" }, out(1, "one ")),
    () => lines({ type: "ping" }, out(2, "two "), { type: "error", retryable: true, detail: "The service stops." }),
    () => problem({ status: 503, code: "not_ready", detail: "Not yet.", retryable: true }),
    () => lines(out(3, "three"), exit({ exit_code: 4 })),
  );
  const { status, stdout, stderr } = await run(["exec", "a", "w", "--", "count"], service);
  expect({ status, stdout }).toEqual({ status: 4, stdout: "one two three" });
  expect(stderr).toMatch(/^roomd: .+\n/);
  const streams = service.seen.filter(isStream).map(({ path }) => path);
  expect(streams.map((path) => /after=(-?\d+)/.exec(path)?.[1])).toEqual(["-1", "1", "2", "2"]);
  expect(new Set(streams.map((path) => path.split("?")[0])).size).toBe(1);
  expect(streams[0]).toMatch(/executions\/exe_[0-9A-Z]{26}\/stream/);
});

test("pipes standard input through in parts that carry their offset", async () => {
  const received: Uint8Array[] = [];
  const over = Promise.withResolvers<void>();
  await using service = await standIn(async (seen) => {
    if (isStream(seen)) {
      await over.promise;
      return lines(exit());
    }
    const body = seen.body as { data_b64?: string; offset?: number; eof?: boolean };
    if (!seen.path.endsWith("/stdin")) return startedResponse();
    expect(body.offset).toBe(received.reduce((sum, part) => sum + part.byteLength, 0));
    received.push(Buffer.from(body.data_b64 ?? "", "base64"));
    if (body.eof) over.resolve();
    return Response.json({});
  });
  const stdin = new Uint8Array(3_000_000).map((_, index) => index % 251);
  expect((await run(["exec", "a", "w", "--", "cat"], { ...service, stdin })).status).toBe(0);
  expect(Buffer.concat(received).equals(Buffer.from(stdin))).toBe(true);
  expect(service.seen[0]?.body).toMatchObject({ stdin_open: true });
  const before = service.seen.length;
  await run(["exec", "a", "w", "--no-stdin", "--", "cat"], { ...service, stdin });
  expect(service.seen[before]?.body).toMatchObject({ stdin_open: false });
});

test("reports a timeout; --background prints the name", async () => {
  await using service = await streaming(() => lines(exit({ timed_out: true, exit_code: null })));
  expect((await run(["exec", "a", "w", "--", "yes"], service)).stderr).toMatch(/ 5 ms.*--timeout/);
  expect(await run(["exec", "a", "w", "--background", "--", "yes"], service)).toMatchObject({
    status: 0,
    stdout: "e\n",
  });
});

test("the first ctrl-c goes to the command; a second one leaves it running", async () => {
  const signalled = Promise.withResolvers<void>();
  const encoder = new TextEncoder();
  await using service = await standIn((seen) => {
    if (seen.path.endsWith("/signal")) signalled.resolve();
    if (!isStream(seen)) return startedResponse();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(encoder.encode(`${JSON.stringify(out(1, "ready\n"))}\n`)),
    });
    return new Response(body);
  });
  const child = Bun.spawn([BINARY, "exec", "a", "w", "--exec-id", "mine", "--", "sleep"], {
    env: { PATH: process.env.PATH ?? "", ...service.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  await child.stdout.getReader().read();
  child.kill("SIGINT");
  await signalled.promise;
  expect(service.seen.at(-1)?.body).toEqual({ signal: "SIGINT" });
  child.kill("SIGINT");
  expect(await child.exited).toBe(130);
  expect(await child.stderr.text()).toContain("roomd execution attach a w mine");
});

test("much output reaches a slow reader completely, and a reader that closes early is no error", async () => {
  const line = `${"x".repeat(99)}\n`;
  const much = () => lines(...Array.from({ length: 100 }, (_, index) => out(index + 1, line.repeat(500))), exit());
  await using service = await streaming(much, much);
  const { stdout } = await run(["exec", "a", "w", "--", "yes"], service);
  expect(stdout.length).toBe(5_000_000);
  const { env } = service;
  const child = Bun.spawn(["sh", "-c", `"$0" exec a w -- yes | head -n 1`, BINARY], {
    env: { PATH: process.env.PATH ?? "", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [first, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect(first).toBe(line);
  expect(complaint).toBe("");
});

test("on a terminal: silence of a command is reported, but never within an unfinished line", async () => {
  const events = (...parts: string[]) =>
    new Response(
      new ReadableStream({
        async start(stream) {
          for (const part of parts) {
            await Bun.sleep(1300);
            stream.enqueue(part);
          }
          stream.close();
        },
      }),
    );
  const line = (event: object) => `${JSON.stringify(event)}\n`;
  await using service = await streaming(() => events(line(out(1, "50 %")), line(out(2, " done\n")), line(exit())));
  const { status, screen } = await runOnTerminal(["exec", "a", "w", "--", "work"], service.env);
  expect(status).toBe(0);
  const seen = screen.replaceAll("\r\u001b[K", "|").replaceAll("\r", "");
  expect(seen).toMatch(/^(\|running work … \d+ s)+\|50 % done\n(\|running work … \d+ s)+\|$/);
});

test("reports that the sandbox ran out of memory, for the command or one of its processes", async () => {
  for (const [fields, status, expected] of [
    [{ exit_code: null, signal: "SIGKILL" }, 137, "roomd: ended by SIGKILL: the sandbox ran out of memory\n"],
    [{ exit_code: 3 }, 3, "roomd: a process of the command was ended by SIGKILL: the sandbox ran out of memory\n"],
  ] as const) {
    await using made = await streaming(() => lines(exit({ oom: true, ...fields })));
    expect(await run(["exec", "a", "w", "--", "x"], made)).toEqual({ status, stdout: "", stderr: expected });
  }
});

/** Runs `roomd exec` on a service that ends the command, as it reports on the stream, long before it answers that it did. */
async function endedBy(signal: NodeJS.Signals, words: string[]): Promise<number> {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const exited = Promise.withResolvers<void>();
  const killed = exit({ exit_code: null, signal: "SIGTERM" });
  await using service = await standIn(async (seen) => {
    if (seen.method === "DELETE") {
      ended.resolve();
      await Promise.race([exited.promise, Bun.sleep(3000)]);
      return Response.json({});
    }
    if (!isStream(seen) && !seen.path.endsWith("/exec")) return startedResponse();
    started.resolve();
    await ended.promise;
    return isStream(seen) ? lines(killed) : Response.json(killed);
  });
  // A parent such as nohup ignores SIGHUP, which a child inherits until it has a handler.
  const line = 'trap "" HUP; exec "$@"';
  const child = Bun.spawn(["sh", "-c", line, "sh", BINARY, ...words], {
    env: { PATH: process.env.PATH ?? "", ...service.env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "inherit",
  });
  await started.promise;
  child.kill(signal);
  const status = await child.exited;
  exited.resolve();
  return status;
}

test.for([
  ["exec", "a", "w", "--", "sleep", "9"],
  ["exec", "a", "w", "--json", "--", "sleep", "9"],
])("%j ends with the status of its own signal, not with that of the command", { timeout: 60_000 }, async (words) => {
  expect(await endedBy("SIGHUP", words)).toBe(129);
});
