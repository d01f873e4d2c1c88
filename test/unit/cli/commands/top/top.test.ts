/** `roomd top`: figures computed from two replies, layout in a screen, keys, and the terminal restored afterwards. */
import { stripVTControlCharacters } from "node:util";
import { describe, expect, test } from "vitest";
import { durationText, SORTS, shortBytes } from "../../../../../daemon/cli/commands/top/top-columns.ts";
import { pressed } from "../../../../../daemon/cli/commands/top/top-keys.ts";
import { ratesOf } from "../../../../../daemon/cli/commands/top/top-rates.ts";
import { rowsOf, screenOf, type TopView } from "../../../../../daemon/cli/commands/top/top-screen.ts";
import type { Top, TopItem } from "../../../../../shared/api/overview/top.ts";
import { SANDBOX_STATES } from "../../../../../shared/api/sandboxes.ts";
import { RealTerminal } from "../../../../harness/clients/real-terminal.ts";
import { until } from "../../../../harness/guests.ts";
import { BINARY, problem, run, standIn } from "../../cli-fixture.ts";

const MIB = 1024 ** 2;

function itemAt(at: number, second: number): TopItem {
  return {
    room_id: ["build-42", "nightly-integration-run-7"][at % 2] ?? "",
    agent_id: `agent-${String(at).padStart(2, "0")}`,
    sandbox_id: `sbx_${at}`,
    state: SANDBOX_STATES[at % SANDBOX_STATES.length] ?? "running",
    ready_at: "2026-01-31T12:00:00.000Z",
    cpu: { vcpu_count: 2, used_seconds: 5 + at * 0.01 * second },
    memory: { memory_mib: 512, resident_bytes: (30 - at) * 10 * MIB },
    disk: { used_bytes: ((at * 7) % 30) * MIB },
    egress: { sent_bytes: 100 + second * ((at * 11) % 30), received_bytes: 7, open_connections: 0 },
  };
}

/** The service's reply in that second, with this number of sandboxes. */
function answerAt(second: number, count = 30, hosts = true): Top {
  return {
    items: Array.from({ length: count }, (_, at) => itemAt(at, second)),
    not_shown: 0,
    host: hosts
      ? {
          uptime_seconds: 100_000,
          rooms: 2,
          sandboxes: { running: 4, failed: 3, creating: 0 },
          requests: 1000 + 25 * second,
          cpu: { cores: 4, busy_seconds: 10 + second, idle_seconds: 100 + 3 * second },
          memory: {
            size_bytes: 8 * 1024 * MIB,
            available_bytes: 2048 * MIB,
            promised_bytes: 4096 * MIB,
            resident_bytes: MIB,
          },
          disk: { size_bytes: 100 * MIB, free_bytes: 5 * MIB },
          loop: {
            busy_seconds: 1 + 0.25 * second,
            owners: [
              { owner: "host", busy_seconds: 0.5 + 0.05 * second },
              { owner: "org:org_2", busy_seconds: 0.2 },
              { owner: "org:org_1", busy_seconds: 0.1 + 0.2 * second },
            ],
            waiting: 0,
            longest: { label: "room_get", owner: "org:org_1", ms: 7.25 },
          },
        }
      : null,
    at: new Date(Date.parse("2026-01-31T13:00:00Z") + second * 1000).toISOString(),
  };
}

function viewOf(more: Partial<TopView> = {}): TopView {
  const rates = ratesOf(answerAt(0), answerAt(2));
  return { rates, sort: "cpu", scroll: 0, filter: "", isTyping: false, notice: null, ...more };
}

describe("rates", () => {
  test("are the difference between two replies, per second between them", () => {
    const { items, host, interval_seconds } = ratesOf(answerAt(0), answerAt(2));
    expect(interval_seconds).toBe(2);
    expect(items[20]?.rates).toEqual({ cpu_percent: 20, sent_bytes_per_second: 10, received_bytes_per_second: 0 });
    expect(host?.rates).toEqual({
      cpu_percent: 25,
      requests_per_second: 25,
      loop_percent: 25,
      loop_owners: [
        { owner: "org:org_1", percent: 20 },
        { owner: "host", percent: 5 },
      ],
    });
  });

  test("are unknown for new, removed and restarted items", () => {
    const unknown = { cpu_percent: null, sent_bytes_per_second: null, received_bytes_per_second: null };
    expect(ratesOf(null, answerAt(0)).items[3]?.rates).toEqual(unknown);
    expect(ratesOf(answerAt(0, 2), answerAt(1, 3)).items[2]?.rates).toEqual(unknown);
    const again = ratesOf(answerAt(5), answerAt(0));
    expect(again.items[3]?.rates).toEqual(unknown);
    const stopped = answerAt(2);
    for (const item of stopped.items) item.cpu.used_seconds = null;
    expect(ratesOf(answerAt(0), stopped).items[3]?.rates.cpu_percent).toBeNull();
    expect(ratesOf(answerAt(0), answerAt(2, 1, false)).host).toBeNull();
  });
});

describe("the screen", () => {
  const sizes = [1, 2, 5, 10, 24, 50].flatMap((rows) =>
    [1, 8, 20, 40, 60, 80, 120, 200].map((cols) => ({ rows, cols })),
  );
  const views = {
    usual: viewOf(),
    "before the first answer": viewOf({ rates: null }),
    "without the host": viewOf({ rates: ratesOf(answerAt(0, 3, false), answerAt(1, 3, false)) }),
    "with nothing": viewOf({ rates: ratesOf(null, answerAt(1, 0, false)) }),
    "with a notice": viewOf({ notice: "The service does not answer; retrying." }),
    "with a filter": viewOf({ filter: "nightly", isTyping: true, scroll: 500 }),
  };
  test.each(Object.entries(views))("%s fits at every size", (_, view) => {
    for (const { rows, cols } of sizes) {
      const lines = screenOf(view, rows, cols).map(stripVTControlCharacters);
      expect(lines.length, `${rows} rows`).toBeLessThanOrEqual(Math.max(rows, 1));
      for (const line of lines) expect(line.length, `${cols} columns: ${line}`).toBeLessThanOrEqual(cols);
    }
  });

  const headers = (cols: number) =>
    screenOf(viewOf(), 24, cols)
      .map(stripVTControlCharacters)
      .find((line) => line.includes("AGENT"))
      ?.split(/ +/)
      .filter((word) => word !== "");

  test("drops the least important columns on a narrow screen", () => {
    const all = ["ROOM", "AGENT", "STATE", "CPU%▾", "MEMORY", "DISK", "OUT/s", "IN/s", "UP"];
    expect(headers(120)).toEqual(all);
    expect(headers(80)).toEqual(all);
    expect(headers(60)).toEqual(all.slice(0, 6));
    expect(headers(45)).toEqual(["AGENT", "STATE", "CPU%▾", "MEMORY"]);
    expect(headers(30)).toEqual(["AGENT", "CPU%▾", "MEMORY"]);
  });

  test("shows the host, or without one the totals of the sandboxes", () => {
    const text = (view: TopView) => stripVTControlCharacters(screenOf(view, 24, 120).join("\n"));
    expect(text(viewOf())).toContain("roomd   up 1d3h   2 rooms   7 sandboxes (4 running, 3 failed)   25.0 requests/s");
    expect(text(viewOf())).toContain(
      "CPU [|||       ] 25.0% of 4 cores   memory [||||||||  ] 6G of 8G   disk [|||||||||",
    );
    expect(text(viewOf())).toContain("loop [|||       ] 25.0%   org_1 20.0%   roomd 5.0%   longest 7.3 ms (room_get)");
    expect(text(views["without the host"])).toMatch(
      /^roomd {3}2 rooms {3}3 sandboxes \(1 creating, 1 starting, 1 running\)\nCPU 3.0% {3}memory 870M/,
    );
  });

  test.each(SORTS)("is sorted by %s, and among equal values by name", (sort) => {
    const rows = rowsOf(viewOf({ sort }));
    const keys = {
      cpu: rows.map(({ rates }) => rates.cpu_percent ?? 0),
      memory: rows.map(({ memory }) => memory.resident_bytes ?? 0),
      disk: rows.map(({ disk }) => disk.used_bytes),
      network: rows.map(({ rates }) => rates.sent_bytes_per_second ?? 0),
      agent: rows.map(() => 0),
    }[sort];
    expect(keys).toEqual(keys.toSorted((a, b) => b - a));
    expect(rows.length).toBe(30);
    const names = rows.map(({ room_id, agent_id }) => `${room_id} ${agent_id}`);
    if (sort === "agent") expect(names).toEqual(names.toSorted());
  });
});

describe("a key", () => {
  const size = { rows: 24, cols: 80 };

  test("sorts, scrolls within the rows, and filters during typing", () => {
    const view = viewOf();
    expect(pressed(view, "m", size)).toBe(true);
    expect(view.sort).toBe("memory");
    pressed(view, "jj\x1b[Bk", size);
    expect(view.scroll).toBe(2);
    pressed(view, "G", size);
    const end = view.scroll;
    expect(end).toBeGreaterThan(5);
    pressed(view, "\x1b[6~jjj", size);
    expect(view.scroll).toBe(end);
    pressed(view, "g\x1b[A", size);
    expect(view.scroll).toBe(0);
    pressed(view, "/nightlyq\x7f", size);
    expect(view).toMatchObject({ filter: "nightly", isTyping: true });
    expect(rowsOf(view).length).toBe(15);
    pressed(view, "\rj", size);
    expect(view).toMatchObject({ filter: "nightly", isTyping: false });
    pressed(view, "\x1b", size);
    expect(view.filter).toBe("");
  });

  test("without a meaning does nothing; q and ctrl-c end it", () => {
    const view = viewOf();
    expect(pressed(view, "xZ\x1b[15~é\x00", size)).toBe(true);
    expect(view).toEqual(viewOf());
    expect(pressed(view, "q", size)).toBe(false);
    expect(pressed(viewOf({ isTyping: true }), "\x03", size)).toBe(false);
  });
});

test.each([
  [0, "0"],
  [1023, "1023"],
  [1024, "1K"],
  [1536, "1.5K"],
  [300 * MIB, "300M"],
  [4096 * MIB, "4G"],
])("%d bytes are %s", (bytes, text) => expect(shortBytes(bytes)).toBe(text));

test.each([
  [0, "0s"],
  [59, "59s"],
  [61, "1m1s"],
  [3600, "1h0m"],
  [90_061, "1d1h"],
])("%d seconds are %s", (seconds, text) => expect(durationText(seconds)).toBe(text));

/** One reply per request, each a second later than the previous one. */
function answering(hosts = true) {
  let second = 0;
  return standIn(() => Response.json(answerAt(second++, 3, hosts)));
}

test("--json prints one object: the reply and its rates per second", async () => {
  await using service = await answering();
  const { status, stdout, stderr } = await run(["top", "--json", "--room", "build-42", "--interval", "250ms"], service);
  expect([status, stderr]).toEqual([0, ""]);
  const printed = JSON.parse(stdout);
  expect(printed).toMatchObject({
    interval_seconds: 1,
    not_shown: 0,
    host: { cpu_percent: 25, requests_per_second: 25, rooms: 2 },
  });
  expect(printed.items[1]).toMatchObject({
    agent_id: "agent-01",
    cpu_percent: 1,
    sent_bytes_per_second: 11,
    memory: { memory_mib: 512 },
  });
  expect(service.seen.map(({ path }) => path)).toEqual(Array(2).fill("/v1/top?room_id=build-42"));
});

test("without a terminal it prints once, as text without colours", async () => {
  await using service = await answering();
  const { status, stdout } = await run(["top", "--interval", "250ms", "--sort", "agent"], service);
  expect(status).toBe(0);
  const lines = stdout.trimEnd().split("\n");
  expect(lines.at(-3)).toMatch(/^build-42 +agent-00 +creating +0\.0 +300M\/512M +0 +0 +0 +1h0m$/);
  expect(stdout).toBe(stripVTControlCharacters(stdout));
});

test("a refused request ends it", async () => {
  await using service = await standIn(() =>
    problem({ status: 404, code: "room_not_found", detail: "There is no room x." }),
  );
  expect(await run(["top", "--room", "x"], service)).toMatchObject({
    status: 1,
    stderr: "roomd: There is no room x.\n",
  });
});

describe("on a terminal", () => {
  const ON = "\x1b[?1049h";
  const OFF = "\x1b[?1049l";

  function open(env: Record<string, string>, cols = 80, args: string[] = []) {
    const program = [BINARY, "top", "--interval", "250ms", ...args];
    return new RealTerminal(
      program,
      { PATH: process.env.PATH ?? "", TERM: "xterm-256color", ...env },
      { cols, rows: 24 },
    );
  }

  test("redraws at the current size, and q restores the screen", async () => {
    await using service = await answering();
    await using terminal = open(service.env);
    await terminal.shows(ON);
    await terminal.shows(/agent-02 .*running/);
    await terminal.shows("requests/s");
    await terminal.shows("\x1b[32m");
    const before = terminal.mark;
    terminal.resize(12, 40);
    await terminal.shows("q quit  c m d n a", before);
    const resized = terminal.mark;
    terminal.type("d");
    terminal.resize(24, 80);
    await terminal.shows("DISK▾", resized);
    const sentCount = service.seen.length;
    await until("another request is sent", () => service.seen.length > sentCount + 1);
    terminal.type("q");
    expect(await terminal.ended).toEqual({ exit_code: 0, signal: 0 });
    expect(terminal.text.endsWith(`\x1b[?25h${OFF}`)).toBe(true);
  });

  test("--once prints without the alternate screen and exits", async () => {
    await using service = await answering();
    await using terminal = open(service.env, 80, ["--once"]);
    expect((await terminal.ended).exit_code).toBe(0);
    expect(terminal.text).toMatch(/agent-02 .*running/);
    expect(terminal.text).not.toContain(ON);
  });

  test("NO_COLOR turns off colours", async () => {
    await using service = await answering();
    await using terminal = open({ ...service.env, NO_COLOR: "1" });
    await terminal.shows(/agent-02 .*running/);
    terminal.type("\x03");
    expect((await terminal.ended).exit_code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
    expect(terminal.text).not.toMatch(/\x1b\[[\d;]*m/);
  });

  test("waits for a service that is down", async () => {
    let isThere = true;
    let second = 0;
    const busy = () => problem({ status: 503, code: "shutting_down", detail: "Stopping.", retryable: true });
    await using service = await standIn(() => (isThere ? Response.json(answerAt(second++, 3)) : busy()));
    await using terminal = open(service.env);
    await terminal.shows("agent-02");
    isThere = false;
    await terminal.shows("The service does not answer; retrying.");
    isThere = true;
    const back = terminal.mark;
    await terminal.shows("q quit", back);
    terminal.type("q");
    expect((await terminal.ended).exit_code).toBe(0);
  });

  test("waits for a service that is down at the start", async () => {
    await using terminal = open({ ROOMD_URL: "http://127.0.0.1:1", ROOMD_API_KEY: "key-test" });
    await terminal.shows("The service does not answer; retrying.");
    terminal.type("q");
    expect((await terminal.ended).exit_code).toBe(0);
  });

  test.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)("%s ends it and restores the terminal", async (signal) => {
    await using service = await answering();
    await using terminal = open(service.env);
    await terminal.shows("agent-02");
    terminal.signal(signal);
    const { exit_code, signal: died } = await terminal.ended;
    expect(exit_code + died).toBeGreaterThan(0);
    expect(terminal.text.lastIndexOf(OFF)).toBeGreaterThan(terminal.text.lastIndexOf("agent-02"));
    expect(terminal.text.lastIndexOf("\x1b[?25h")).toBeGreaterThan(terminal.text.lastIndexOf("\x1b[?25l"));
  });

  test("a revoked key ends it with the service's error", async () => {
    let isGood = true;
    const refused = () => problem({ status: 401, code: "invalid_api_key", detail: "The API key is not valid." });
    await using service = await standIn(() => (isGood ? Response.json(answerAt(1, 3)) : refused()));
    await using terminal = open(service.env);
    await terminal.shows("agent-02");
    isGood = false;
    expect((await terminal.ended).exit_code).toBe(1);
    expect(terminal.text.split(OFF).at(-1)).toContain("The API key is not valid.");
  });
});
