/** Executions of an agent on this host: what is kept of those that have ended, and whose names are never run again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Drive } from "../../../../guest-agent/drive/drive.ts";
import type { Execution } from "../../../../guest-agent/exec/execution.ts";
import { Executions } from "../../../../guest-agent/exec/executions.ts";
import { Journal } from "../../../../guest-agent/exec/journal.ts";
import type { Reaper } from "../../../../guest-agent/reap.ts";
import { KEPT_DISK_BYTES, KEPT_MEMORY_BYTES, KEPT_OUTPUT_BYTES } from "../../../../shared/agent-protocol/kept.ts";
import { PieceDecoder } from "../../../../shared/agent-protocol/pieces.ts";

let directory: string;
let executions: Executions;
/** Files of output that are open. */
let files: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-executions-"));
  files = 0;
  executions = new Executions({
    reaper: { spare: () => {} } as unknown as Reaper,
    drive: { holds: () => false } as unknown as Drive,
    env: () => ({}),
    takeCgroup: () => null,
    makeJournal: () => new Journal({ kept_bytes: KEPT_OUTPUT_BYTES, open: openNothing }),
  });
});
afterEach(() => {
  executions.forgetAll();
  expect(files).toBe(0);
  rmSync(directory, { recursive: true });
});

/** What is written there is counted, and no more: a gigabyte of it is too much for a test's disk. */
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

interface Way {
  argv?: string[];
  command?: string;
  isGenerated?: boolean;
}

/** Runs it to its end; who waited for it has its answer. */
async function run(exec_id: string, { command = "", argv = ["/bin/sh", "-c", command], isGenerated = false }: Way) {
  const request = { method: "exec", exec_id, argv, cwd: "/", env: {}, user: null, timeout_ms: 60_000, stdin: false };
  const { execution } = await executions.start(request as Parameters<Executions["start"]>[0], {
    fingerprint: argv.join(" "),
    tag: "{}",
    isGenerated,
  });
  await execution.ended;
  execution.wasTold = isGenerated;
  return execution;
}

async function outputOf(execution: Execution): Promise<string> {
  const reader = await execution.journal.reader(0);
  const decoder = new PieceDecoder(0);
  let text = "";
  for (let bytes = await reader.next(65_536, true); bytes; bytes = await reader.next(65_536, true)) {
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

/** As quick as a command can be: there is none. */
const NONE = { argv: ["/no/such/program"] };

test("a command's output is there after 600 others, and its name is not run again", async () => {
  const ran = join(directory, "ran");
  const build = { command: `echo ran >>${ran}; echo built` };
  await run("build", build);
  for (let count = 0; count < 600; count++) await run(`exe_${count}`, { argv: ["true"], isGenerated: true });
  expect(await outputOf(executions.get("build"))).toBe("built\n");
  await run("build", build);
  expect(readFileSync(ran, "utf8")).toBe("ran\n");
});

test("beyond what is kept in memory those go whose answer was given, then the oldest; chosen names are not run again", async () => {
  await run("build", { command: "echo built" });
  const most = KEPT_MEMORY_BYTES / 4096;
  for (let count = 0; count < most; count++) await run(`exe_${count}`, { ...NONE, isGenerated: true });
  expect(await outputOf(executions.get("build"))).toBe("built\n");
  const kept = executions.list(0, most).length;
  expect(kept).toBeGreaterThan(0);
  expect(codeOf(() => executions.get("exe_0"))).toBe("history_gone");
  expect(codeOf(() => executions.get(`exe_${most - 1}`))).toBe(null);

  for (let count = 0; count < most; count++) await run(`chosen-${count}`, NONE);
  for (const name of ["build", "chosen-0"]) {
    expect(codeOf(() => executions.get(name))).toBe("history_gone");
    await expect(run(name, NONE)).rejects.toMatchObject({ code: "history_gone" });
  }
  expect(codeOf(() => executions.get(`chosen-${most - 1}`))).toBe(null);
  expect(codeOf(() => executions.get("never"))).toBe("execution_not_found");
}, 60_000);

test("beyond what is kept on the disk as well, and their files are closed", async () => {
  const full = { command: `head -c ${KEPT_OUTPUT_BYTES} /dev/zero` };
  const most = KEPT_DISK_BYTES / KEPT_OUTPUT_BYTES;
  await run("build", { command: "seq 100000" });
  for (let count = 0; count < most + 4; count++) await run(`exe_${count}`, { ...full, isGenerated: true });
  expect(codeOf(() => executions.get("build"))).toBe(null);
  expect(codeOf(() => executions.get("exe_0"))).toBe("history_gone");
  expect(files).toBeLessThanOrEqual(most + 1);
  expect(files).toBeGreaterThan(most / 2);
}, 60_000);

test("who is still being answered is not let go", async () => {
  const reading = await run("exe_first", { command: "echo first", isGenerated: true });
  const reader = await reading.journal.reader(0);
  const most = KEPT_MEMORY_BYTES / 4096;
  for (let count = 0; count < most; count++) await run(`exe_${count}`, { ...NONE, isGenerated: true });
  expect((await reader.next(65_536, true))?.byteLength).toBeGreaterThan(0);
  reader.close();
}, 60_000);
