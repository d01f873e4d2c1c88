/**
 * Registry of the existing templates: reads their manifests, and determines whether the snapshot of each may be used. A file is hashed
 * again only if its size or times have changed since it was last verified.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { AGENT_PROOF_GENERATION, GENERATION, OLDEST_GENERATION } from "../../../shared/agent-protocol/messages.ts";
import type { TemplateRecord } from "../../../shared/api/templates.ts";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import type { GuestImage } from "../../host/guest/plan.ts";
import { digestFile } from "../../host/images/digest.ts";
import { diskMib } from "../../host/images/overlay.ts";
import { readableTemplate } from "../../host/isolation/directories.ts";
import { type Acceleration, cpuModelFor } from "../../host/machine/spec.ts";
import { processorOf } from "../../host/processor.ts";
import { DigestCache, lookOf } from "./digest-cache.ts";
import {
  COLD_FILES,
  FILE_NAMES,
  type FileFacts,
  imageOf,
  type Manifest,
  manifest,
  SAVED_FILE,
  type SavedFacts,
  SNAPSHOT_FILES,
  savedFacts,
  savedWith,
} from "./manifest.ts";

/** Name of the link to the current version. */
export const CURRENT = "current";
export const MANIFEST_FILE = "manifest.json";
/** Names of versions' directories: derived from the time, so that later versions sort after earlier ones. */
export const VERSION = /^[0-9a-z]{26}$/;
/** Name prefix of a link that is about to become CURRENT. */
export const UNPUBLISHED = `.${CURRENT}-`;

/** The current version of the template in `home`; null if absent. */
export function publishedVersion(home: string): string | null {
  try {
    return readlinkSync(join(home, CURRENT));
  } catch {
    return null;
  }
}

/**
 * The versions in a template's directory that are retained when `current` is published: it, and the previous one for the sandboxes that run
 * on it.
 */
export function keptVersions(names: readonly string[], current: string | null): string[] {
  const published = names.filter((name) => VERSION.test(name) && current !== null && name <= current);
  return published.sort().slice(-2);
}

export interface Template {
  record: TemplateRecord;
  /** Owner; null: the host. */
  owner: OrgId | null;
  directory: string;
  manifest: Manifest;
  /** Maximum size of the disk of a sandbox; 0 if it has no disk, so that nothing can start from it. */
  disk_mib: number;
}

/** Image from which a guest starts, and why not from the snapshot, if so. */
export interface UsableImage {
  image: GuestImage;
  /** Reason for not using the snapshot, as one sentence; null if it may be used. */
  refused: string | null;
  /** There is no snapshot with this number of processors, which is no fault. */
  isUnsaved: boolean;
}

/** An organization sees its own templates, and the host's, except those with a name of its own; null sees the host's only. */
export interface Templates {
  list(orgId: OrgId | null): Template[];
  get(templateId: string, orgId: OrgId | null): Template | null;
  /** Checks the template's files, and the snapshot for this number of processors. Throws if not even a cold boot is possible. */
  usable(template: Template, vcpus?: number): Promise<UsableImage>;
}

export function makeTemplates(deps: {
  paths: Paths;
  acceleration(): Acceleration;
  qemuVersion: string | null;
  /** Group that reads the templates of an owner, assigned if missing; null: root alone. */
  groupOf(owner: OrgId | null): Promise<number | null>;
  /** Of this host. */
  processor?: string;
  log: Log;
}): Templates {
  const { paths, log } = deps;
  const processor = deps.processor ?? processorOf();
  const verified = new DigestCache(paths.verified_templates, log);
  const cache = new Map<string, Template>();
  /** Versions with group and mode already set on their files. */
  const readable = new Set<string>();

  const read = (templateId: string, owner: OrgId | null): Template | null => {
    const home = paths.template(templateId, owner);
    const version = publishedVersion(home);
    if (version === null) return null;
    const directory = join(home, version);
    const cached = cache.get(home);
    if (cached?.directory === directory) return cached;
    try {
      const value: unknown = JSON.parse(readFileSync(join(directory, MANIFEST_FILE), "utf8"));
      if (!Value.Check(manifest, value)) throw new Error("its manifest has an unknown format: build it again");
      const template = { record: value.record, owner, directory, manifest: value, disk_mib: diskOf(directory) };
      cache.set(home, template);
      return template;
    } catch (error) {
      log.warn("template ignored", { template_id: templateId, owner, error: String(error) });
      return null;
    }
  };
  const get: Templates["get"] = (templateId, orgId) =>
    (orgId === null ? null : read(templateId, orgId)) ?? read(templateId, null);

  const damage = async (directory: string, files: readonly FileFacts[]): Promise<string | null> => {
    for (const facts of files) {
      const path = join(directory, facts.name);
      if (!existsSync(path)) return `${facts.name} is missing`;
      if (verified.has(path)) continue;
      const look = lookOf(path);
      const { size } = statSync(path);
      if (size !== facts.size_bytes) return `${facts.name} has ${size} bytes instead of ${facts.size_bytes}`;
      if ((await digestFile(path)) !== facts.digest) return `${facts.name} is damaged: its digest differs`;
      verified.add(path, look);
    }
    return null;
  };

  const mismatch = (
    { hardware }: Pick<Manifest, "hardware">,
    { qemu_version, processor: saved = processor }: SavedFacts,
  ): string | null => {
    if (hardware.acceleration !== deps.acceleration()) {
      return `it was saved under ${hardware.acceleration}, this host runs ${deps.acceleration()}`;
    }
    if (qemu_version !== deps.qemuVersion)
      return `it was saved by QEMU ${qemu_version}, this host has ${deps.qemuVersion}`;
    // Under TCG the processor is emulated by QEMU.
    if (hardware.acceleration === "kvm" && saved !== processor) {
      return `it was saved on another processor (${saved}), this host has ${processor}`;
    }
    return null;
  };

  return {
    list: (orgId) => {
      const names = new Set([null, orgId].flatMap((owner) => namesIn(paths.templates_of(owner))));
      return [...names].sort().flatMap((templateId) => get(templateId, orgId) ?? []);
    },
    get,
    usable: async (template, vcpus = 1) => {
      const { directory, manifest, owner } = template;
      if (!readable.has(directory)) {
        readableTemplate(directory, await deps.groupOf(owner));
        readable.add(directory);
      }
      const cold = COLD_FILES.map((role) => manifest.files[role]);
      const broken = tooForeign(manifest) ?? (await damage(directory, cold));
      if (broken) throw new Error(`template ${template.record.template_id} cannot be used: ${broken}; build it again`);
      const saved = vcpus === 1 ? manifest : factsIn(savedWith(directory, vcpus));
      const files = saved ? SNAPSHOT_FILES.map((role) => saved.files[role]) : [];
      const refused = saved
        ? (mismatch(manifest, saved) ?? (await damage(savedWith(directory, vcpus), files)))
        : `it has not been saved with ${vcpus} processors yet`;
      const image = imageOf(directory, manifest, refused === null, vcpus);
      const acceleration = deps.acceleration();
      const isUnsaved = saved === null;
      if (image.hardware.acceleration === acceleration) return { refused, isUnsaved, image };
      // The sandbox boots, on the available processor.
      const hardware = { ...image.hardware, acceleration, cpu_model: cpuModelFor(acceleration) };
      return { refused, isUnsaved, image: { ...image, hardware } };
    },
  };
}

/** Null if nothing is saved. */
function factsIn(directory: string): SavedFacts | null {
  try {
    const value: unknown = JSON.parse(readFileSync(join(directory, SAVED_FILE), "utf8"));
    return Value.Check(savedFacts, value) ? value : null;
  } catch {
    return null;
  }
}

const namesIn = (directory: string) => (existsSync(directory) ? readdirSync(directory) : []);

/** Reason for not using a template at all, not even for a cold boot: its agent speaks another protocol. */
function tooForeign({ generation }: Manifest): string | null {
  if (generation >= OLDEST_GENERATION && generation <= GENERATION) return null;
  return `its agent speaks generation ${generation} of the protocol, and this roomd ${OLDEST_GENERATION} to ${GENERATION}`;
}

/** Whether its agent does not authenticate to the host, or accepts any host: sandboxes still start, but the template should be rebuilt. */
export function isOutdated({ manifest }: Template): boolean {
  return manifest.generation < AGENT_PROOF_GENERATION;
}

/** Kernel of a template, for probing the host; null if absent. */
export function newestKernel(paths: Paths): string | null {
  if (!existsSync(paths.templates)) return null;
  const kernels = readdirSync(paths.templates).map((name) => join(paths.template(name), CURRENT, FILE_NAMES.kernel));
  return kernels.find((kernel) => existsSync(kernel)) ?? null;
}

/** An image of the host's template if its snapshot may be used, else null: nothing else is worth launching ahead. */
export async function usableSnapshot(templates: Templates, templateId: string, vcpus = 1): Promise<GuestImage | null> {
  const template = templates.get(templateId, null);
  if (!template) return null;
  const { image, refused } = await templates.usable(template, vcpus);
  return refused === null ? image : null;
}

function diskOf(directory: string): number {
  try {
    return diskMib(join(directory, FILE_NAMES.cold_overlay));
  } catch {
    return 0;
  }
}
