/**
 * Guest in which a recipe's steps run: it boots the new root, has the egress of the recipe's allowlist, and its disk becomes the template's
 * root. Its memory, the only place of secrets, is discarded.
 */
import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, rename, rm, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import { Channel, GENERATION, STEPS_FLAG } from "../../../shared/agent-protocol/messages.ts";
import { BUSYBOX } from "../../../shared/agent-protocol/runtime.ts";
import { newId } from "../../../shared/ids.ts";
import { monotonicMs, timeoutSignal } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import type { Paths } from "../../core/config/paths.ts";
import { Lines } from "../../core/lines.ts";
import { errnoOf, ServiceError } from "../../core/service-error.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { endInGuest, feedInGuest, startFollowed } from "../../host/guest-link/exec.ts";
import type { GuestLink, GuestRequests } from "../../host/guest-link/handshake.ts";
import { convertRoot, makeOverlay } from "../../host/images/overlay.ts";
import { type Hardware, kernelAppend } from "../../host/machine/spec.ts";
import { withBuildGuest } from "./build-guest.ts";
import { FILE_NAMES } from "./manifest.ts";

const MEMORY_MIB = 1024;
/** Steps with a shorter total time are run again instead of cached. */
const WORTH_KEEPING_MS = 10_000;
/** Time limit of one step. */
const STEP_MS = 60 * 60_000;
/** Grace time after which the guest is no longer trusted to enforce a step's timeout. */
const LATE_MS = 60_000;
const END_MS = 120_000;
const LINK_MS = 10_000;
/** Result of a machine that its guest has switched off. */
const ORDERLY = "exit 0";
const TOLD_LINES = 20;
const TOLD_LINE_CHARACTERS = 500;
const TITLE_CHARACTERS = 200;
const MAX_REFUSED = 16;
/** The name and the bytes are passed from outside the script. The secret is stored in memory only. */
const KEEP_SECRET = 'umask 077 && mkdir -p /run/secrets && cat >"/run/secrets/$0"';

/**
 * A command that runs as root, or as the image's user; or content of the host that is put into the root, all of which is added to `hash`.
 */
export type Step =
  | { title: string; argv: string[]; env?: Record<string, string>; cwd?: string; user?: string }
  | { title: string; put(hash: Hash): AsyncIterable<Uint8Array>; argv: string[] };

/** A `put` of these bytes, in one piece. */
export const once = (bytes: Uint8Array) =>
  async function* (hash: Hash): AsyncGenerator<Uint8Array> {
    hash.update(bytes);
    yield bytes;
  };

/** A recipe's own. */
export const stepOf = (script: string): Step => ({
  title: script.trim().split("\n", 1)[0] ?? "",
  argv: ["/bin/sh", "-c", script],
});

/** Handler of a guest's egress requests under an allowlist; each refusal is reported. */
export type ServeEgress = (
  allowlist: readonly string[],
  refused: (denial: { host: string | null; ip: string | null; port: number | null; reason: string }) => void,
) => { requests: GuestRequests; close(): void };

export interface StepsDeps {
  host: GuestHost;
  paths: Paths;
  qemu_img: string;
  egress: ServeEgress;
}

export interface Keeping {
  /** Content hash of each step, by `contentsOf`. */
  contents: readonly string[];
  hasRoom(bytes: number): boolean;
  /** Caches a root as it is after `done` steps. */
  keep(root: string, done: number): Promise<void>;
}

export interface Steps {
  steps: readonly Step[];
  /** Number of steps that have already run. */
  done: number;
  /** Null: intermediate results are not cached. */
  keeping: Keeping | null;
  egress_allowlist: readonly string[];
  /** Content of /run/secrets while they run, by name. */
  secrets: Readonly<Record<string, Uint8Array>>;
}

/** Content hash of each step, without its title: steps with equal hashes are assumed to have the same effect. */
export async function contentsOf(steps: readonly Step[]): Promise<string[]> {
  return await Array.fromAsync(steps, async (step) => {
    const hash = createHash("sha256");
    if (!("put" in step)) return contentOf(step, hash);
    for await (const _ of step.put(hash));
    return contentOf(step, hash);
  });
}

/** `hash` already contains the data that the step puts. */
function contentOf({ title: _, ...step }: Step, hash: Hash): string {
  return hash.update(JSON.stringify(step)).digest("hex");
}

/** Runs the steps on the root in `directory`, which they change. Throws build_failed with the step and its last lines. */
export async function runRecipeSteps(
  { host, paths, qemu_img, egress }: StepsDeps,
  hardware: Hardware,
  directory: string,
  virtualSize: number,
  { steps, done, keeping, egress_allowlist, secrets }: Steps,
  onProgress: (line: string) => void,
): Promise<void> {
  const root = join(directory, FILE_NAMES.root);
  const overlay = join(directory, "steps-overlay.qcow2");
  const changed = join(directory, "steps-changed.qcow2");
  const made = join(directory, "steps-root.qcow2");
  const halfway = join(directory, "steps-halfway.qcow2");
  let isWhole = false;
  const user = host.isolation.readerOf(newId("sbx"));
  const convert = (path: string) =>
    convertRoot(qemu_img, { path, format: "qcow2", over: root, size_bytes: virtualSize, user }, made);
  await makeOverlay(qemu_img, overlay, relative(paths.trial("any").directory, root), virtualSize);
  const refused = new Set<string>();
  /** Failing to cache is not an error. */
  const tried = async (work: () => Promise<void>) => {
    try {
      await work();
      return true;
    } catch (error) {
      onProgress(`the result is not cached for later builds: ${errnoOf(error) ?? "failed to store it"}`);
      return false;
    }
  };
  const network = egress(egress_allowlist, ({ host, ip, port, reason }) => {
    const target = `${host ?? ip}${port === null ? "" : `:${port}`}`;
    if (refused.has(target) || refused.size >= MAX_REFUSED) return;
    refused.add(target);
    const why = reason === "not_listed" ? "it is not on the recipe's egress_allowlist" : `${reason}, as in any sandbox`;
    onProgress(`refused: ${target}: ${why}`);
  });
  const image = {
    hardware: { ...hardware, base_memory_mib: Math.max(hardware.base_memory_mib, MEMORY_MIB) },
    kernel: join(directory, FILE_NAMES.kernel),
    initramfs: join(directory, FILE_NAMES.initramfs),
    append: `${kernelAppend(hardware.acceleration)} ${STEPS_FLAG}`,
    root,
    cold_overlay: overlay,
    snapshot_disk: root,
    snapshot_overlay: overlay,
    snapshot_memory: null,
    snapshot_vcpus: 1,
    agent_generation: GENERATION,
    start_ms: 0,
  };
  try {
    onProgress("booting the guest that runs the steps");
    await withBuildGuest(host, paths.trial, image, network.requests, async (guest) => {
      const { connection, exited, paths: own } = guest;
      let link = await connection.link(LINK_MS);
      const keepAfter = async (done: number) => {
        // Space for the changes, the full root besides the existing one, and the cached copy.
        const sizes = await Promise.all([own.overlay, root].map(async (path) => (await stat(path)).size));
        if (!keeping?.hasRoom(3 * sizes.reduce((sum, size) => sum + size))) return;
        await must(link, { title: "", argv: [BUSYBOX, "sync"] });
        // QEMU has written everything once it is stopped.
        let isCopied = false;
        await guest.whileStopped(async () => {
          isCopied = await tried(() => copyFile(own.overlay, halfway, constants.COPYFILE_FICLONE));
        });
        link = await connection.link(LINK_MS);
        if (!isCopied) return;
        await tried(async () => {
          await convert(halfway);
          await keeping.keep(made, done);
        });
        for (const file of [halfway, made]) await rm(file, { force: true });
      };
      let [isKept, sinceMs] = [keeping !== null, monotonicMs()];
      for (const [name, bytes] of Object.entries(secrets)) {
        await must(link, { title: "", put: once(bytes), argv: [BUSYBOX, "sh", "-c", KEEP_SECRET, name] });
      }
      for (const [at, step] of steps.entries()) {
        if (at < done) continue;
        onProgress(`step ${at + 1} of ${steps.length}: ${step.title.slice(0, TITLE_CHARACTERS)}`);
        const ended = await run(link, step, onProgress).catch((error: unknown) => {
          if (!(error instanceof StreamError)) throw error;
          return { how: `did not complete: ${error.message}`, lines: [], content: "" };
        });
        if (ended.how !== null) throw failed(at + 1, { ...ended, how: ended.how }, refused);
        // Not cached: a step with content that had changed by the time it was put, or with a refused connection.
        isKept &&= ended.content === keeping?.contents[at] && refused.size === 0;
        if (!isKept || at + 1 === steps.length || monotonicMs() - sinceMs < WORTH_KEEPING_MS) continue;
        await keepAfter(at + 1);
        sinceMs = monotonicMs();
      }
      isWhole = isKept;
      // Its reply is not awaited: its connection ends with the machine.
      link.open({ method: "power_off" }).finished.catch(() => {});
      const how = await within(exited, END_MS, "stopping the guest that ran the steps");
      // A guest that did not power off itself may have written only part of its data.
      if (how !== ORDERLY) throw new Error(`the guest that ran the steps did not stop cleanly: ${how}`);
      await rename(own.overlay, changed);
    });
    await convert(changed);
    await rename(made, root);
    if (isWhole) await tried(async () => await keeping?.keep(root, steps.length));
  } finally {
    network.close();
    for (const file of [overlay, changed, made, halfway]) await rm(file, { force: true });
  }
}

interface StepResult {
  /** Null: well. */
  how: string | null;
  lines: string[];
  content: string;
}

/** One of our own. */
async function must(link: GuestLink, step: Step): Promise<void> {
  const { how } = await run(link, step, () => {});
  if (how !== null) throw new Error(`${step.argv.join(" ")} in the guest ${how}`);
}

/** Reports its output line by line, in order. Processes that it leaves running are killed. */
async function run(link: GuestLink, step: Step, tell: (line: string) => void): Promise<StepResult> {
  const exec_id = newId("exe");
  const place = "put" in step ? { cwd: "/", env: {}, user: "root" } : placeOf(step);
  const request = { exec_id, fingerprint: "", argv: step.argv, ...place, timeout_ms: STEP_MS, stdin: "put" in step };
  const following = await startFollowed(link, request);
  // Reading the host's content may fail. A command that stops reading is reported by its own exit.
  let broken: unknown = null;
  const hash = createHash("sha256");
  if ("put" in step) {
    feed(link, exec_id, step.put(hash)).catch((error: unknown) => {
      if (error instanceof StreamError) return;
      broken = error;
      following.close();
    });
  }
  const lines: string[] = [];
  const take = (line: string) => {
    const truncated = line.slice(0, TOLD_LINE_CHARACTERS);
    lines.push(truncated);
    if (lines.length > TOLD_LINES) lines.shift();
    tell(`  ${truncated}`);
  };
  // One line buffer per stream: a partial line of one stream does not continue a line of the other.
  const [out, err] = [new Lines(take), new Lines(take)];
  const pieces = async function* () {
    try {
      yield* following.pieces();
    } catch (error) {
      throw broken ?? error;
    }
  };
  const read = async () => {
    for await (const piece of pieces()) {
      for (const { channel, bytes } of piece) (channel === Channel.stderr ? err : out).push(bytes);
    }
    for (const each of [out, err]) each.end();
    return await following.finished;
  };
  const reading = within(read(), STEP_MS + LATE_MS, "a step").finally(() => following.close());
  const { exit_code, signal, timed_out } = await reading;
  await endInGuest(link, exec_id);
  const ended = { lines, content: contentOf(step, hash) };
  if (timed_out) return { ...ended, how: "did not end within an hour" };
  if (signal !== null) return { ...ended, how: `was ended by ${signal}` };
  return { ...ended, how: exit_code === 0 ? null : `ended with ${exit_code}` };
}

/** Defaults: user root, the image's working directory and environment. The image's user need not exist in /etc/passwd. */
function placeOf({ env = {}, cwd, user = "root" }: Exclude<Step, { put: unknown }>) {
  return { env, cwd: cwd ?? null, user: user === "root" || user.includes(":") ? user : `${user}:` };
}

async function feed(link: GuestLink, exec_id: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
  let offset = 0;
  // One signal for all pieces: a timer per piece would last for an hour.
  const late = timeoutSignal(STEP_MS);
  const send = async (bytes: Uint8Array, eof: boolean) => {
    await feedInGuest(link, { exec_id, offset, eof }, bytes, late);
    offset += bytes.byteLength;
  };
  for await (const piece of pieces) await send(piece, false);
  await send(new Uint8Array(), true);
}

function failed(
  step: number,
  { how, lines }: StepResult & { how: string },
  refused: ReadonlySet<string>,
): ServiceError {
  const isRefused = refused.size > 0;
  return new ServiceError("build_failed", {
    detail: `Step ${step} ${how}.`,
    details: { step: `step ${step}`, last_lines: lines, ...(isRefused && { refused: [...refused] }) },
    hint: isRefused
      ? `Allow the steps to connect to ${[...refused].slice(0, 5).join(", ")}, by \`--egress\` or the recipe's egress_allowlist.`
      : "See the step's last lines.",
  });
}
