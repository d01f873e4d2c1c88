/**
 * Processes of guests: the only place that starts them, and the only one that ends them. Each gets its own session, so that it outlives the
 * daemon, and a clean environment.
 */
import { closeSync, openSync, readFileSync, statSync, truncateSync } from "node:fs";
import type { Subprocess } from "bun";
import { monotonicMs, sleep } from "../core/clock.ts";
import { DeadlineError, within } from "../core/concurrency/published.ts";
import { Lines } from "../core/lines.ts";
import { loopTime, Pieces } from "../core/loop/index.ts";
import { errnoOf } from "../core/service-error.ts";
import { asNamespaceRoot, atWord } from "./isolation/argv.ts";
import { mapIds } from "./isolation/namespace.ts";

/** Enough to recognize the process: a pid alone is reused. */
export interface ProcessRecord {
  pid: number;
  /** Clock ticks since the host's boot at which it started, from /proc/<pid>/stat. */
  start_ticks: string;
}

/** A process of this daemon, or of an earlier one: the end of the latter shows only in /proc, and in its sockets. */
export interface KnownProcess extends ProcessRecord {
  name: string;
  /** Resolves when the process has ended, with a description: `exit 1` or `killed by SIGKILL`. */
  exited?: Promise<string>;
}

/** A process that this daemon has started. */
export type HostProcess = Required<KnownProcess>;

/** Puts a process into its group before its first instruction; null if absent. */
export type Enter = ((process: ProcessRecord) => Promise<unknown>) | null;

/** Environment of all our processes; nothing of the daemon's own is passed on. */
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };
const OWN_SESSION = { env: ENVIRONMENT, cwd: "/", detached: true };

/**
 * Starts a process in its own session with its output in `logFile`. Throws if the program does not exist; a program started by another,
 * which first drops its rights, ends with 127 instead. `device` is opened here, with our rights, and becomes its descriptor
 * DEVICE_DESCRIPTOR.
 */
export function startProcess(
  name: string,
  argv: readonly string[],
  logFile: string,
  device: string | null = null,
): HostProcess {
  const log = openSync(logFile, "a", 0o600);
  const opened = device === null ? [] : [openSync(device, "r+")];
  try {
    return describe(name, Bun.spawn([...argv], { ...OWN_SESSION, stdio: ["ignore", log, log, ...opened] }));
  } finally {
    for (const descriptor of [log, ...opened]) closeSync(descriptor);
  }
}

/**
 * Starts a process like startProcess, and lets it run its program once `enter` has put it into its group; immediately if that is null. If
 * the daemon ends before, so does the process. Throws the error of `enter`; no process remains then.
 */
export async function startEntering(
  name: string,
  argv: readonly string[],
  logFile: string,
  enter: Enter,
  device: string | null = null,
): Promise<HostProcess> {
  if (enter === null) return startProcess(name, argv, logFile, device);
  return await startAtWord(name, atWord(argv), logFile, enter, device);
}

/**
 * Starts a process as root of a separate user namespace, which is user `root` on the host, and the further users are those after it. Throws
 * if the host has no user namespaces; no process remains then.
 */
export async function startInNamespace(
  name: string,
  argv: readonly string[],
  logFile: string,
  root: number,
  enter: Enter = null,
): Promise<HostProcess> {
  return await startAtWord(name, asNamespaceRoot(argv), logFile, (process) =>
    Promise.all([mapIds(process.pid, root, process.exited), enter?.(process)]),
  );
}

/** Starts a process that waits for a line from us, and sends it when `prepare` is done. */
async function startAtWord(
  name: string,
  argv: readonly string[],
  logFile: string,
  prepare: (process: HostProcess) => Promise<unknown>,
  device: string | null = null,
): Promise<HostProcess> {
  const log = openSync(logFile, "a", 0o600);
  const opened = device === null ? [] : [openSync(device, "r+")];
  let child: Subprocess<"pipe", number, number>;
  try {
    child = Bun.spawn([...argv], { ...OWN_SESSION, stdio: ["pipe", log, log, ...opened] });
  } finally {
    for (const descriptor of [log, ...opened]) closeSync(descriptor);
  }
  const process = describe(name, child);
  try {
    await prepare(process);
    child.stdin.write("go\n");
    await child.stdin.end();
    return process;
  } catch (error) {
    await endProcess(process);
    throw error;
  }
}

/** Output of a guest's processes that is retained before the log is emptied. */
const MAX_LOG_BYTES = 4 * 1024 * 1024;

/**
 * Empties a log of processes that has grown too large; returns whether it had. They append, so that they continue at its new end. Does
 * nothing if the log is absent.
 */
export function boundLog(logFile: string): boolean {
  try {
    if (statSync(logFile).size <= MAX_LOG_BYTES) return false;
    truncateSync(logFile);
    return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}

function describe(name: string, child: Subprocess): HostProcess {
  // The daemon may end before its guests do.
  child.unref();
  const exited = child.exited.then(() =>
    child.signalCode === null ? `exit ${child.exitCode}` : `killed by ${child.signalCode}`,
  );
  return { name, pid: child.pid, start_ticks: startTicksOf(child.pid) ?? "", exited };
}

/** The first descriptor after standard input, output and error. */
export const DEVICE_DESCRIPTOR = 3;

/** Starts a process that does nothing until it is ended: a target for trials of operations on other processes. */
export function startWaiting(): { process: ProcessRecord; end(): void } {
  const child = Bun.spawn(["cat"], { env: ENVIRONMENT, cwd: "/", stdin: "pipe", stdout: "ignore", stderr: "ignore" });
  return { process: { pid: child.pid, start_ticks: startTicksOf(child.pid) ?? "" }, end: () => child.kill("SIGKILL") };
}

/** A separate process of this same program, which ends with this process. */
export interface OwnProcess {
  /** Resolves with its standard error, once it has ended and all its output was passed on. */
  ended: Promise<string>;
  /** Ends the process with its whole group. Idempotent. */
  end(): Promise<void>;
}

/** Starts a process with a line of input on its standard input, which then stays open until we end. Its output is passed on line by line. */
export function startOwn(argument: string, input: Iterable<string>, onLine: (line: string) => void): OwnProcess {
  const child = Bun.spawn([process.execPath, argument], { ...OWN_SESSION, stdio: ["pipe", "pipe", "pipe"] });
  const started = describe(argument, child);
  // The event loop must wait for the process: a loop that nothing keeps alive turns without a pause.
  child.ref();
  // A process that has ended reads nothing more.
  void writeLine(child.stdin, input).catch(() => {});
  const said = new Response(child.stderr).text();
  const ended = Promise.all([said, readLines(child.stdout, onLine), child.exited]).then(([text]) => text);
  return { ended, end: () => endProcess(started) };
}

async function writeLine(stdin: Bun.FileSink, text: Iterable<string>): Promise<void> {
  const pieces = new Pieces(loopTime, loopTime.owner, "process.input");
  for (const part of text) {
    stdin.write(part);
    await stdin.flush();
    const turn = pieces.next();
    if (turn) await turn;
  }
  stdin.write("\n");
  await stdin.flush();
}

/** Runs a program to its end and returns its standard output. Throws ProgramFailed. */
export async function runProgram(argv: readonly string[], deadlineMs: number): Promise<string> {
  const child = Bun.spawn([...argv], { env: ENVIRONMENT, cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  try {
    const done = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
    const [stdout, stderr, code] = await within(done, deadlineMs, argv[0] ?? "program");
    if (code !== 0) throw new ProgramFailed(argv[0], code, stderr);
    return stdout;
  } finally {
    child.kill("SIGKILL");
  }
}

/** A program that ended with an exit code other than 0. */
export class ProgramFailed extends Error {
  /** On its standard error. */
  readonly said: string;

  constructor(program: string | undefined, code: number, output: string) {
    super(`${program} ended with ${code}: ${output.trim().slice(-4000)}`);
    this.said = output;
  }
}

/**
 * Runs a program that takes long, passing on its standard output line by line. Throws ProgramFailed; DeadlineError if it is killed at the
 * deadline, and the signal's reason if that is the cause.
 */
export async function runWithProgress(
  argv: readonly string[],
  onLine: (line: string) => void,
  deadlineMs?: number,
  signal?: AbortSignal,
): Promise<void> {
  const child = Bun.spawn([...argv], { env: ENVIRONMENT, cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const errors = new Response(child.stderr).text();
  const read = readLines(child.stdout, onLine);
  const kill = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  try {
    const ended = Promise.all([read, child.exited]);
    const [, code] = deadlineMs === undefined ? await ended : await within(ended, deadlineMs, argv[0] ?? "program");
    signal?.throwIfAborted();
    if (code !== 0) throw new ProgramFailed(argv[0], code, await errors);
  } finally {
    signal?.removeEventListener("abort", kill);
    kill();
  }
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const lines = new Lines(onLine);
  for await (const chunk of stream) lines.push(chunk);
  lines.end();
}

/** Retained characters of a line's start, and of its end. */
const LINE_HEAD = 1000;
const LINE_TAIL = 200;

/**
 * Runs a program between two open files, to its end. Its standard error is passed on line by line, in English; the middle of a long line is
 * left out.
 */
export async function runBetween(
  argv: readonly string[],
  {
    stdin,
    stdout,
    onComplaint,
  }: {
    stdin: number | "ignore";
    stdout: number | "ignore";
    onComplaint(line: string): void;
  },
): Promise<{ code: number; signal: string | null }> {
  // Bytes are characters: names are nothing else, and each is reported unchanged.
  const env = { ...ENVIRONMENT, LC_ALL: "C" };
  const child = Bun.spawn([...argv], { env, cwd: "/", stdin, stdout, stderr: "pipe" });
  const decoder = new TextDecoder("latin1");
  let line = "";
  for await (const chunk of child.stderr) {
    const [rest = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    line = shortened(line + rest);
    for (const next of lines) {
      onComplaint(line);
      line = shortened(next);
    }
  }
  if (line !== "") onComplaint(line);
  return { code: await child.exited, signal: child.signalCode === null ? null : String(child.signalCode) };
}

function shortened(line: string): string {
  return line.length > LINE_HEAD + LINE_TAIL + 1 ? `${line.slice(0, LINE_HEAD)}…${line.slice(-LINE_TAIL)}` : line;
}

/** Whether the recorded process still runs (a zombie does not). */
export function isAlive(process: ProcessRecord): boolean {
  const ticks = startTicksOf(process.pid);
  return ticks !== null && ticks === process.start_ticks;
}

/** Ends a process and its group; resolves once the process is gone. Idempotent. */
export async function endProcess(target: ProcessRecord & Partial<KnownProcess>): Promise<void> {
  killGroup(target);
  await gone(target, 10_000);
}

function killGroup(target: ProcessRecord): void {
  if (!isAlive(target)) return;
  // A process that leads no group belongs to a group with an exited leader.
  for (const pid of [-target.pid, target.pid]) {
    try {
      return void process.kill(pid, "SIGKILL");
    } catch {
      // There is no such group, or it has ended since.
    }
  }
}

/** The process that has this pid now; null when none has, or only its zombie. */
export function processOf(pid: number): ProcessRecord | null {
  const start_ticks = startTicksOf(pid);
  return start_ticks === null ? null : { pid, start_ticks };
}

/** The pid of the leader of the process's group, which may have ended; null when there is no such process. */
export function groupOf(pid: number): number | null {
  const group = statOf(pid)?.[2];
  return group === undefined ? null : Number(group);
}

async function gone(target: ProcessRecord & Partial<KnownProcess>, deadlineMs: number): Promise<void> {
  if (target.exited) {
    await within(target.exited, deadlineMs, `the end of ${target.name}`);
    return;
  }
  // Not our child (an earlier daemon started it): /proc is the only source.
  const deadline = monotonicMs() + deadlineMs;
  while (isAlive(target)) {
    if (monotonicMs() > deadline) throw new DeadlineError(`process ${target.pid} did not end`);
    await sleep(2);
  }
}

function startTicksOf(pid: number): string | null {
  return statOf(pid)?.[19] ?? null;
}

/**
 * /proc/<pid>/stat from its third field on: state, parent, group, …; null if there is no such process, or only its zombie. A process exists
 * even if its first thread alone has ended: the other threads have its open files.
 */
function statOf(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the name in parentheses, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" && Number(fields[17]) <= 1 ? null : fields;
  } catch {
    return null;
  }
}
