/** Executions of an agent on this host: retention of ended ones, and names that are never run again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requestOf } from "../../../../daemon/domain/sandboxes/executions/run/request.ts";
import { runCommand } from "../../../../daemon/domain/sandboxes/executions/run/run.ts";
import { startFollowed } from "../../../../daemon/host/guest-link/exec.ts";
import type { Drive } from "../../../../guest-agent/drive/drive.ts";
import type { Execution } from "../../../../guest-agent/exec/execution.ts";
import { Executions } from "../../../../guest-agent/exec/executions.ts";
import { Journal } from "../../../../guest-agent/exec/kept-output.ts";
import { executionMethods } from "../../../../guest-agent/exec/methods.ts";
import {
  KEPT_DISK_BYTES,
  KEPT_EXECUTION_BYTES,
  KEPT_MEMORY_BYTES,
  KEPT_OUTPUT_BYTES,
} from "../../../../shared/agent-protocol/kept-output.ts";
import { PieceDecoder } from "../../../../shared/agent-protocol/pieces.ts";
import { PlayedAgent } from "../../domain/executions/agent-fixture.ts";
import { adopting } from "../reaper-fixture.ts";

let directory: string;
let executions: Executions;
let agent: PlayedAgent;
/** Files of output that are open. */
let files: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-executions-"));
  files = 0;
  executions = new Executions({
    reaper: adopting,
    drive: { holds: () => false } as unknown as Drive,
    env: () => ({}),
    takeCgroup: () => null,
    makeJournal: () => new Journal({ kept_bytes: KEPT_OUTPUT_BYTES, open: openNothing }),
  });
  const methods = executionMethods(executions);
  agent = new PlayedAgent((stream, request) => {
    void methods[request.method as keyof typeof methods](stream, request);
  });
});
afterEach(() => {
  agent.link.close("over");
  executions.forgetAll();
  expect(files).toBe(0);
  rmSync(directory, { recursive: true });
});

/** Writes are only counted: a gigabyte is too much for a test's disk. */
function openNothing() {
  files++;
  return {
    write: () => {},
    read: async () => {},
    close: () => {
      files--;
    },
  };
}

/** Starts it under a name chosen by its caller, and resolves when it has ended; its output is not read. */
async function run(exec_id: string, argv: string[], isGenerated = false): Promise<Execution> {
  const request = { method: "exec", exec_id, argv, cwd: "/", env: {}, user: null, timeout_ms: 60_000, stdin: false };
  const naming = { fingerprint: argv.join(" "), tag: "{}", isGenerated, isBrief: true };
  const { execution } = await executions.start(request as Parameters<Executions["start"]>[0], naming);
  await execution.ended;
  return execution;
}

/** As the daemon does for a caller that waits and chose no name; returns the generated name. */
async function call(argv: string[]): Promise<string> {
  const input = { room_id: "r", sandbox: "s", argv, cwd: "/", timeout_ms: 60_000 };
  const { exec_id } = await runCommand(async () => agent.link, requestOf(input, {}), input, Promise.reject);
  return exec_id;
}

async function outputOf(execution: Execution): Promise<string> {
  const reader = await execution.journal.reader(0);
  const decoder = new PieceDecoder(0);
  let text = "";
  for (let bytes = await reader.next(65_536); bytes; bytes = await reader.next(65_536)) {
    for (const piece of decoder.push(bytes)) text += Buffer.from(piece.bytes).toString();
  }
  reader.close();
  return text;
}

const codeOf = (work: () => unknown): unknown => {
  try {
    work();
    return null;
  } catch (error) {
    return Object(error).code;
  }
};

/** More than can be kept, however little each takes. */
const MOST = KEPT_MEMORY_BYTES / KEPT_EXECUTION_BYTES;
/** As quick as a command can be: there is none. */
const NONE = ["/no/such/program"];

test("a caller that starts a command and waits for it learns whether an earlier request had started it", async () => {
  const { start } = requestOf({ room_id: "r", sandbox: "s", exec_id: "mine", argv: ["true"], cwd: "/" }, {});
  for (const existing of [false, true]) {
    const following = await startFollowed(agent.link, start);
    expect(following).toMatchObject({ existing, execution: { state: "exited", exit_code: 0 } });
  }
});

test("a command's output is available after 600 others, and its name is not run again", async () => {
  const ran = join(directory, "ran");
  const build = ["/bin/sh", "-c", `echo ran >>${ran}; echo built`];
  await run("build", build);
  for (let count = 0; count < 600; count++) await call(["true"]);
  expect(await outputOf(executions.get("build"))).toBe("built\n");
  await run("build", build);
  expect(readFileSync(ran, "utf8")).toBe("ran\n");
});

test("above the memory limit acknowledged ones are evicted, then the oldest; chosen names never run again", async () => {
  await run("build", ["echo", "built"]);
  const first = await call(NONE);
  let last = first;
  for (let count = 0; count < MOST; count++) last = await call(NONE);
  expect(await outputOf(executions.get("build"))).toBe("built\n");
  expect(executions.list(0, MOST).length).toBeGreaterThan(0);
  expect(codeOf(() => executions.get(first))).toBe("history_gone");
  expect(codeOf(() => executions.get(last))).toBe(null);

  for (let count = 0; count < MOST; count++) await run(`chosen-${count}`, NONE);
  for (const name of ["build", "chosen-0"]) {
    expect(codeOf(() => executions.get(name))).toBe("history_gone");
    await expect(run(name, NONE)).rejects.toMatchObject({ code: "history_gone" });
  }
  expect(codeOf(() => executions.get(`chosen-${MOST - 1}`))).toBe(null);
  expect(codeOf(() => executions.get("never"))).toBe("execution_not_found");
}, 60_000);

test("above the disk limit too, and their files are closed", async () => {
  const full = ["head", "-c", String(KEPT_OUTPUT_BYTES), "/dev/zero"];
  const most = KEPT_DISK_BYTES / KEPT_OUTPUT_BYTES;
  await run("build", ["seq", "100000"]);
  for (let count = 0; count < most + 4; count++) (await run(`exe_${count}`, full, true)).wasTold = true;
  expect(codeOf(() => executions.get("build"))).toBe(null);
  expect(codeOf(() => executions.get("exe_0"))).toBe("history_gone");
  expect(files).toBeLessThanOrEqual(most + 1);
  expect(files).toBeGreaterThan(most / 2);
}, 60_000);

test("an execution that is still being read is not evicted", async () => {
  const reader = await executions.get(await call(["echo", "first"])).journal.reader(0);
  for (let count = 0; count < MOST; count++) await call(NONE);
  expect((await reader.next(65_536))?.byteLength).toBeGreaterThan(0);
  reader.close();
}, 60_000);

test("a name is chosen by an exec_id or by an Idempotency-Key", () => {
  const input = { room_id: "r", sandbox: "s", argv: NONE };
  const ulid = "01J00000000000000000000000";
  const generated = [requestOf(input, {}), requestOf(input, { ulid }), requestOf({ ...input, exec_id: "x" }, {})];
  expect(generated.map(({ start }) => start.generated)).toEqual([true, false, false]);
});

test("a command without a time limit outlives any timeout_ms, and its state has the maximum", async () => {
  const request = {
    method: "exec",
    argv: ["sleep", "0.2"],
    cwd: "/",
    env: {},
    user: null,
    timeout_ms: 1,
    stdin: false,
  };
  const naming = { fingerprint: "", tag: "{}", isGenerated: false, isBrief: false };
  const start = (exec_id: string, unlimited: boolean) =>
    executions.start({ ...request, exec_id, unlimited } as Parameters<Executions["start"]>[0], naming);
  const { execution: free } = await start("free", true);
  const { execution: limited } = await start("limited", false);
  await Promise.all([free.ended, limited.ended]);
  expect(limited.state).toMatchObject({ timed_out: true, timeout_ms: 1 });
  expect(free.state).toMatchObject({ timed_out: false, exit_code: 0, timeout_ms: 2 ** 31 - 1 });
});
