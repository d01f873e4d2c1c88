/**
 * Saves the host's templates with several processors, each once it has been wanted: from then on sandboxes with that number start as fast
 * as those with one. One save at a time; sandboxes have priority: for them a save is aborted to release its memory, and is retried later.
 *
 *     wanted ──▶ boot ──▶ save ──▶ test ──▶ renamed to its final path
 */
import { statSync } from "node:fs";
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { monotonicMs } from "../../core/clock.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { readableTemplate } from "../../host/isolation/directories.ts";
import { processorOf } from "../../host/processor.ts";
import { draftOf, FILE_NAMES, factsOf, imageOf, SAVED_FILE, type SavedFacts, savedIn, savedWith } from "./manifest.ts";
import type { Template, Templates } from "./registry.ts";
import { makeEmpty, saveMachine } from "./save.ts";
import { selfTest } from "./self-test.ts";

/** Each count takes as much disk as the template's memory; sandboxes with other counts boot. */
const SAVED_COUNTS: readonly number[] = [2, 4, 8];
/** Delay before the retry of a save that failed, or that gave way. */
const AGAIN_MS = { failed: 3_600_000, gaveWay: 60_000 } as const;
/** Disk space for a save, as a multiple of the template's own files. */
const SPACE_SHARE = 2;
const BLOCK_BYTES = 512;
const MIB = 1024 ** 2;

/** Whether snapshots with this number of processors are supported. */
export const isEverSaved = (vcpus: number): boolean => vcpus === 1 || SAVED_COUNTS.includes(vcpus);

export interface ProcessorsDeps {
  paths: Paths;
  templates: Templates;
  log: Log;
  qemu_img: string;
  qemuVersion: string | null;
  host(): GuestHost;
  /** Disk space that may be used, in bytes. */
  spareBytes(): number;
  /** One more is there. */
  saved(): void;
}

/** A save in progress. */
interface Saving {
  memory_mib: number;
  over: AbortController;
  done: Promise<void>;
}

export class Processors {
  readonly #deps: ProcessorsDeps;
  /** Earliest time of the next try, by target directory. */
  readonly #notBefore = new Map<string, number>();
  #saving: Saving | null = null;
  #isStopped = false;

  constructor(deps: ProcessorsDeps) {
    this.#deps = deps;
  }

  /** Host memory used by the save in progress. */
  get memoryMib(): number {
    return this.#saving?.memory_mib ?? 0;
  }

  /**
   * Sandboxes of the host's template have this number of processors: saves the template with it, unless another save is in progress or
   * there is no room for it.
   */
  want(templateId: string, vcpus: number, hasMemoryFor: (memoryMib: readonly number[]) => boolean): void {
    const template = this.#deps.templates.get(templateId, null);
    if (!template || vcpus === 1 || !isEverSaved(vcpus) || this.#saving || this.#isStopped) return;
    const { spareBytes } = this.#deps;
    const memory_mib = template.manifest.hardware.base_memory_mib;
    const isEarly = monotonicMs() < (this.#notBefore.get(savedWith(template.directory, vcpus)) ?? 0);
    if (isEarly || !hasMemoryFor([memory_mib]) || spareBytes() < SPACE_SHARE * bytesSaved(template)) return;
    const over = new AbortController();
    const done = this.#save(template, vcpus, over.signal).finally(() => {
      this.#saving = null;
    });
    this.#saving = { memory_mib, over, done };
  }

  /** Aborts the save in progress, to release its memory. Resolves once that is free, with whether there was one. */
  async giveWay(): Promise<boolean> {
    const saving = this.#saving;
    saving?.over.abort();
    await saving?.done;
    return saving !== null;
  }

  /** Resolves once nothing of the save remains. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.giveWay();
  }

  async #save(template: Template, vcpus: number, signal: AbortSignal): Promise<void> {
    const { log, saved, templates } = this.#deps;
    const about = { template_id: template.record.template_id, vcpu_count: vcpus };
    const draft = draftOf(template.directory, vcpus);
    const startedAt = monotonicMs();
    try {
      if ((await templates.usable(template)).refused !== null) return;
      await this.#make(template, vcpus, draft, signal);
      log.info("saved a template with more processors", { ...about, took_ms: Math.round(monotonicMs() - startedAt) });
      saved();
    } catch (error) {
      await rm(draft, { recursive: true, force: true }).catch(() => {});
      const again = monotonicMs() + (signal.aborted ? AGAIN_MS.gaveWay : AGAIN_MS.failed);
      this.#notBefore.set(savedWith(template.directory, vcpus), again);
      if (!signal.aborted)
        log.warn("failed to save a template with more processors", { ...about, error: describeError(error) });
    }
  }

  async #make(template: Template, vcpus: number, draft: string, signal: AbortSignal): Promise<void> {
    const { directory, manifest, disk_mib } = template;
    const { paths, qemu_img, qemuVersion } = this.#deps;
    const host = this.#deps.host();
    const { hardware, append, start_seconds = 0 } = manifest;
    const virtualSize = disk_mib * MIB;
    await mkdir(draft, { mode: 0o711 });
    // The backing file of its disk is beside it, as in a sandbox.
    await link(join(directory, FILE_NAMES.root), join(draft, FILE_NAMES.root));
    const saving = { hardware: imageOf(directory, manifest, false).hardware, append, virtualSize, vcpus };
    const deps = { qemu_img, placeOf: paths.saving, host };
    await saveMachine(deps, directory, draft, { ...saving, start_ms: start_seconds * 1000 }, signal);
    await makeEmpty({ paths, qemu_img }, draft, ["snapshot_overlay", "disk"], virtualSize);
    readableTemplate(draft, host.isolation.templateGroup);
    const image = { ...imageOf(directory, manifest, true, vcpus), ...savedIn(draft, true) };
    await selfTest(host, paths.saving, image, signal);
    const facts: SavedFacts = {
      qemu_version: qemuVersion ?? "unknown",
      ...(hardware.acceleration === "kvm" && { processor: processorOf() }),
      files: {
        disk: await factsOf(draft, "disk"),
        memory: await factsOf(draft, "memory"),
        snapshot_overlay: await factsOf(draft, "snapshot_overlay"),
      },
    };
    await writeFile(join(draft, SAVED_FILE), JSON.stringify(facts));
    signal.throwIfAborted();
    const into = savedWith(directory, vcpus);
    // Removes an earlier, unusable save.
    await rm(into, { recursive: true, force: true });
    await rename(draft, into);
  }
}

/** Disk usage of a template's snapshot; its files are sparse. */
function bytesSaved({ directory }: Template): number {
  const taken = (["disk", "memory"] as const).map(
    (role) => statSync(join(directory, FILE_NAMES[role]), { throwIfNoEntry: false })?.blocks ?? 0,
  );
  return taken.reduce((sum, blocks) => sum + blocks * BLOCK_BYTES, 0);
}
