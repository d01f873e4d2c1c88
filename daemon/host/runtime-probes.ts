/**
 * Probes of the features that the daemon relies on without a promise: libc by FFI, with offsets and numbers that are hard-coded here, and
 * Bun's handling of descriptors that its types do not declare. Each does the real thing once, at the start, and compares it with another
 * source. If one fails no guest is started or adopted, and `doctor` reports which.
 *
 * Project quotas have a separate trial (files/project-quota.ts).
 */
import {
  closeSync,
  constants,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sleep } from "../core/clock.ts";
import { DeadlineError, within } from "../core/concurrency/published.ts";
import { describeError, errnoOf } from "../core/service-error.ts";
import { readFacts } from "./files/facts.ts";
import { getdents, limitFileSize, O_CLOEXEC, openat2, RESOLVE_BENEATH } from "./files/libc.ts";
import type { RawPath } from "./files/raw-path.ts";
import { adoptedPeer, loopbackPeer } from "./guest-link/transports/adopted.ts";
import { startWaiting } from "./process.ts";
import { endOf } from "./process-end.ts";

/** Each takes a few milliseconds, on a host that has just booted more; a probe that hangs twice has failed. */
const DEADLINE_MS = 15_000;
/** Time in which the end of a running process could be reported too early. */
const EARLY_MS = 2;
const LIMIT_BYTES = 4096;

/** The probed functions. */
export interface Probed {
  endOf: typeof endOf;
  readFacts: typeof readFacts;
  openat2: typeof openat2;
  getdents: typeof getdents;
  limitFileSize: typeof limitFileSize;
  adoptedPeer: typeof adoptedPeer;
  loopbackPeer: typeof loopbackPeer;
}

const REAL: Probed = { endOf, readFacts, openat2, getdents, limitFileSize, adoptedPeer, loopbackPeer };

type Probe = (probed: Probed, scratch: string) => Promise<void> | void;

/** By purpose, as shown to people. */
const PROBES: Record<string, Probe> = {
  "the ends of processes": probeEnds,
  "limits of processes": probeLimits,
  "facts of files": probeFacts,
  "paths beneath a directory": probePaths,
  "names in a directory": probeNames,
  "connections that are adopted": probeAdoption,
  "vsock connections": probeVsock,
};

/**
 * Features that do not work here as the daemon needs them, a sentence each; empty if all do. `place` is a directory in which a scratch one
 * may be made.
 */
export async function probeRuntime(
  place: string,
  changed: Partial<Probed> = {},
  deadlineMs = DEADLINE_MS,
): Promise<string[]> {
  const scratch = mkdtempSync(join(place, ".probe-"));
  const probed = { ...REAL, ...changed };
  const probing = Object.entries(PROBES).map(async ([feature, probe]) => {
    const attempt = () => within(Promise.try(probe, probed, scratch), deadlineMs, "the probe");
    try {
      // Without processor time the deadline passes before the result is read.
      await attempt().catch((error: unknown) => {
        if (!(error instanceof DeadlineError)) throw error;
        return attempt();
      });
      return [];
    } catch (error) {
      return [`The support of this host for ${feature} does not work, and roomd needs it: ${describeError(error)}.`];
    }
  });
  try {
    return (await Promise.all(probing)).flat();
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function expectSame(subject: string, is: unknown, should: unknown): void {
  if (is !== should) throw new Error(`${subject} is ${String(is)} but ${String(should)} was expected`);
}

/** Tests that Bun waits for a pidfd as for a socket (process-end.ts). */
async function probeEnds({ endOf }: Probed): Promise<void> {
  const waiting = startWaiting();
  try {
    let hasEnded = false;
    const ended = endOf(waiting.process).then(() => {
      hasEnded = true;
    });
    await Promise.race([ended, sleep(EARLY_MS)]);
    expectSame("a process that runs and has ended", hasEnded, false);
    waiting.end();
    await ended;
  } finally {
    waiting.end();
  }
}

/** Tests prlimit64(2) against the kernel's text in /proc. */
function probeLimits({ limitFileSize }: Probed): void {
  const waiting = startWaiting();
  try {
    limitFileSize(waiting.process.pid, LIMIT_BYTES);
    const [, soft] = /^Max file size\s+(\S+)/m.exec(readFileSync(`/proc/${waiting.process.pid}/limits`, "utf8")) ?? [];
    expectSame("the limit of a process", soft, String(LIMIT_BYTES));
  } finally {
    waiting.end();
  }
}

/** Tests statx(2), by the offsets of its struct, against lstat. */
function probeFacts({ readFacts }: Probed, scratch: string): void {
  const file = join(scratch, "facts");
  writeFileSync(file, "known", { mode: 0o640 });
  const directory = openDirectory(scratch);
  try {
    const facts = readFacts(directory, "facts" as RawPath);
    const known = lstatSync(file, { bigint: true });
    expectSame("a file's type", facts.type, "file");
    expectSame("a file's mode", facts.mode, Number(known.mode) & 0o7777);
    expectSame("a file's links", facts.links, Number(known.nlink));
    expectSame("a file's size", facts.size_bytes, Number(known.size));
    expectSame("a file's space", facts.allocated_bytes, Number(known.blocks) * 512);
    expectSame("a file's time", facts.modified_at, new Date(Number(known.mtimeMs)).toISOString());
    expectSame("a file's inode", facts.identity.split(":")[2], String(known.ino));
  } finally {
    closeSync(directory);
  }
}

/** openat2(2): a path that leads out is refused, and a file beneath is found. */
function probePaths({ openat2 }: Probed, scratch: string): void {
  writeFileSync(join(scratch, "beneath"), "");
  symlinkSync("/", join(scratch, "out"));
  const directory = openDirectory(scratch);
  const open = (path: string) =>
    openat2(directory, path as RawPath, constants.O_RDONLY | O_CLOEXEC, 0, RESOLVE_BENEATH);
  try {
    closeSync(open("beneath"));
    for (const path of ["..", "out", "/"]) {
      let refusal: string | null = "none";
      try {
        closeSync(open(path));
      } catch (error) {
        refusal = errnoOf(error) ?? describeError(error);
      }
      expectSame(`the error of ${path}`, refusal, "EXDEV");
    }
  } finally {
    closeSync(directory);
  }
}

/** getdents64(2): the buffer that it fills has the only name of the directory. */
function probeNames({ getdents }: Probed, scratch: string): void {
  const place = mkdtempSync(join(scratch, "names-"));
  writeFileSync(join(place, "a-known-name"), "");
  const directory = openDirectory(place);
  try {
    const buffer = Buffer.alloc(4096);
    const filled = getdents(directory, buffer);
    expectSame("a directory's list", buffer.subarray(0, filled).includes("a-known-name\0"), true);
    expectSame("the rest of a directory", getdents(directory, buffer), 0);
  } finally {
    closeSync(directory);
  }
}

/** A listening descriptor that Bun adopts, and the descriptor of the connection that it accepts: the kernel's transport needs both. */
async function probeAdoption({ adoptedPeer }: Probed): Promise<void> {
  expectSame("the family of a connection", await adoptedPeer(), "unix");
}

/** The same over vsock, if the kernel has a loopback of it. */
async function probeVsock({ loopbackPeer }: Probed): Promise<void> {
  const cid = await loopbackPeer();
  if (cid !== null) expectSame("the CID of a connection", cid, 1);
}

function openDirectory(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | O_CLOEXEC);
}
