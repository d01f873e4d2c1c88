/**
 * Owns saving the host's templates with more processors than one, each once somebody has wanted it: from then on sandboxes with so many
 * start as fast as those with one. One at a time, beside sandboxes, of which it takes nothing.
 *
 *   wanted ──▶ boot ──▶ save ──▶ test ──▶ renamed to where it is found
 */
import { link, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { newId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Paths } from "../../core/paths.ts";
import { describeError } from "../../core/service-error.ts";
import type { GuestHost } from "../../host/guest/plan.ts";
import { readableTemplate } from "../../host/isolation/directories.ts";
import { processorOf } from "../../host/processor.ts";
import { FILE_NAMES, factsOf, imageOf, SAVED_FILE, type SavedFacts, savedIn, savedWith } from "./manifest.ts";
import type { Template, Templates } from "./registry.ts";
import { makeEmpty, saveMachine } from "./save.ts";
import { selfTest } from "./self-test.ts";

/** Each takes as much disk as the template's own memory; sandboxes with other numbers boot. */
const SAVED_COUNTS: readonly number[] = [2, 4, 8];
const MIB = 1024 ** 2;

export interface ProcessorsDeps {
  paths: Paths;
  templates: Templates;
  log: Log;
  qemu_img: string;
  qemuVersion: string | null;
  host(): GuestHost;
  hasSpace(): boolean;
  hasMemoryFor(memoryMib: readonly number[]): boolean;
  /** One more is there. */
  saved(): void;
}

export class Processors {
  readonly #deps: ProcessorsDeps;
  readonly #over = new AbortController();
  /** By where they are to lie; those that failed are not tried again by this daemon. */
  readonly #tried = new Set<string>();
  #work: Promise<void> | null = null;

  constructor(deps: ProcessorsDeps) {
    this.#deps = deps;
  }

  /** Sandboxes of the host's template have so many processors: it is saved with them, unless that is under way for another or cannot be just now. */
  want(templateId: string, vcpus: number): void {
    const template = this.#deps.templates.get(templateId, null);
    if (!template || !SAVED_COUNTS.includes(vcpus) || this.#work || this.#over.signal.aborted) return;
    const into = savedWith(template.directory, vcpus);
    const { hasMemoryFor, hasSpace } = this.#deps;
    if (this.#tried.has(into) || !hasSpace() || !hasMemoryFor([template.manifest.hardware.base_memory_mib])) return;
    this.#tried.add(into);
    this.#work = this.#save(template, vcpus).finally(() => {
      this.#work = null;
    });
  }

  /** Resolves once nothing of it is left. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#work;
  }

  async #save(template: Template, vcpus: number): Promise<void> {
    const { log, saved } = this.#deps;
    const about = { template_id: template.record.template_id, vcpu_count: vcpus };
    const begun = performance.now();
    const draft = join(template.directory, `.${basename(savedWith(template.directory, vcpus))}-${newId("evt")}`);
    try {
      if ((await this.#deps.templates.usable(template)).refused !== null) return;
      await this.#make(template, vcpus, draft);
      log.info("template saved with more processors", { ...about, took_ms: Math.round(performance.now() - begun) });
      saved();
    } catch (error) {
      await rm(draft, { recursive: true, force: true }).catch(() => {});
      if (!this.#over.signal.aborted) {
        log.warn("template not saved with more processors", { ...about, error: describeError(error) });
      }
    }
  }

  async #make({ directory, manifest, disk_mib }: Template, vcpus: number, draft: string): Promise<void> {
    const { paths, qemu_img, qemuVersion } = this.#deps;
    const { signal } = this.#over;
    const host = this.#deps.host();
    const { hardware, append, start_seconds = 0 } = manifest;
    const virtualSize = disk_mib * MIB;
    await mkdir(draft, { mode: 0o711 });
    // What its disk lies over is beside it, as in a sandbox.
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
    const into = savedWith(directory, vcpus);
    // Of what could not be used any more.
    await rm(into, { recursive: true, force: true });
    await rename(draft, into);
  }
}
