/** `roomd terminal watch` and `token`: the choice of a terminal, its displayed output, and resuming after a broken connection. */
import { expect, test } from "vitest";
import { problem, run, type Seen, standIn } from "../../cli-fixture.ts";

const TERMINALS = "/v1/rooms/r/sandboxes/w/terminals";
const terminal = (terminal_id: string, state: string, minute: number) => ({
  terminal_id,
  state,
  created_at: `2026-01-31T12:0${minute}:00.000Z`,
});
const LIST = [terminal("old", "running", 1), terminal("new", "running", 3), terminal("over", "ended", 5)];
const ticketOf = (terminal_id: string) => ({ terminal_id, ws_path: "/x", token: "ttk_x", expires_at: "soon" });
const lines = (...events: object[]) => new Response(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
const output = (offset: number, text: string) => ({
  type: "output",
  offset,
  data_b64: Buffer.from(text).toString("base64"),
});
const watching = (offset: number) => ({ type: "watching", offset, rows: 24, cols: 80, gap: 0, typist: null });
const EXIT = { type: "exit", exit_code: 3, signal: null };

/** Answers with these streams, one after another. */
const serving = (items: object[], ...streams: Response[]) =>
  standIn(({ method, path }: Seen) => {
    if (path.includes("/watch")) return streams.shift() ?? problem({ status: 404, code: "x", detail: "No more." });
    if (method === "GET") return Response.json({ items, next_cursor: null });
    return Response.json(ticketOf(path.endsWith("/token") ? String(path.split("/").at(-2)) : "made"), { status: 201 });
  });

test("shows the newest running terminal to its end, without sequences other than drawing", async () => {
  const shown = lines(
    watching(0),
    output(0, "a\x1b]52;c;aGk=\x07b\x1b[31m"),
    { type: "ping" },
    output(20, "c\r\n"),
    EXIT,
  );
  await using service = await serving(LIST, shown);
  const { status, stdout, stderr } = await run(["terminal", "watch", "r", "w"], { env: service.env });
  expect([status, stdout]).toEqual([0, "ab\x1b[31mc\r\n"]);
  expect(stderr).toMatch(/^roomd: .* 3$/m);
  expect(service.seen.map(({ path }) => path)).toEqual([TERMINALS, `${TERMINALS}/new/watch`]);
});

test("resumes a broken stream from the last byte", async () => {
  const first = lines(watching(100), output(100, "ab"));
  const second = lines(watching(102), output(102, "cd"), {
    type: "error",
    code: "x",
    detail: "Wait.",
    retryable: true,
  });
  await using service = await serving(LIST, first, second, lines(watching(104), output(104, "ef"), EXIT));
  const { status, stdout } = await run(["terminal", "watch", "r", "w", "old"], { env: service.env });
  expect([status, stdout]).toEqual([0, "abcdef"]);
  expect(service.seen.map(({ path }) => path)).toEqual(
    ["", "?after=102", "?after=104"].map((after) => `${TERMINALS}/old/watch${after}`),
  );
});

test("reports an end that is not retryable, and --json prints events unchanged", async () => {
  const errorEvent = { type: "error", code: "invalid_state", detail: "The sandbox is destroyed.", retryable: false };
  await using service = await serving(LIST, lines(watching(0), errorEvent), lines(watching(0), EXIT));
  const refused = await run(["terminal", "watch", "r", "w"], { env: service.env });
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining("The sandbox is destroyed.") });
  const { stdout } = await run(["terminal", "watch", "r", "w", "--json"], { env: service.env });
  expect(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([watching(0), EXIT]);
});

test("reports a refused first request immediately, even if it is retryable", async () => {
  const detail = "The sandbox's template is too old for watching terminals.";
  const refusal = problem({ status: 502, code: "guest_unreachable", detail, retryable: true });
  await using service = await serving(LIST, refusal);
  const { status, stderr } = await run(["terminal", "watch", "r", "w"], { env: service.env });
  expect([status, stderr]).toEqual([1, expect.stringContaining(detail)]);
  expect(service.seen.filter(({ path }) => path.includes("/watch"))).toHaveLength(1);
});

test("watch fails if no terminal is running, and token opens a shell", async () => {
  await using service = await serving([terminal("over", "ended", 5)]);
  const watched = await run(["terminal", "watch", "r", "w"], { env: service.env });
  expect(watched).toMatchObject({ status: 1, stderr: expect.stringContaining("roomd shell r w") });
  const made = await run(["terminal", "token", "r", "w", "--json"], { env: service.env });
  expect(JSON.parse(made.stdout)).toEqual({
    ...ticketOf("made"),
    page: `${service.url}/rooms/r/agents/w/terminal?terminal=made`,
  });
  expect(service.seen.at(-1)).toMatchObject({ method: "POST", path: TERMINALS, body: { rows: 24, cols: 80 } });
});

test("a token is for the named terminal, or for the newest running one", async () => {
  await using service = await serving(LIST);
  for (const [given, taken] of [
    [[], "new"],
    [["old"], "old"],
  ] as const) {
    const { stdout } = await run(["terminal", "token", "r", "w", ...given, "--json"], { env: service.env });
    expect(JSON.parse(stdout)).toMatchObject({ terminal_id: taken, token: "ttk_x" });
  }
});
