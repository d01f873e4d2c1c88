/**
 * Owns the way of an image onto this host: skopeo, as a user that owns nothing else and within bounds of size and time, puts it into an OCI image
 * layout. What it says its layers hold is compared by digest, as they come; what is in them is read in a guest alone.
 */
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../../core/service-error.ts";
import { asHelper } from "../../../host/isolation/argv.ts";
import { ownedDirectory, ownFile, ownTree } from "../../../host/isolation/directories.ts";
import type { Identity } from "../../../host/isolation/ids.ts";
import { ProgramFailed, runProgram, runWithProgress } from "../../../host/process.ts";
import {
  digestOf,
  IMAGE_NAME,
  type ImageFacts,
  layerBytes,
  MOST_JSON_BYTES,
  platformManifest,
  readIndexOrManifest,
  readLayout,
} from "./layout.ts";
import { localImage, repositoryOf } from "./reference.ts";

/** As the layers are stored. */
const MOST_BYTES = 8 * 1024 ** 3;
const ASK_DEADLINE_MS = 60_000;
/** Else skopeo looks for some. */
const NO_AUTH = "{}";
const COPY_DEADLINE_MS = 60 * 60_000;

export interface PulledImage extends ImageFacts {
  /** Null where it was not in a registry, or not for several platforms. */
  index_digest: string | null;
  layout: string;
}

/**
 * Puts the image into `directory`, which is made for it, and is the caller's to remove. `auth` is what opens its registry, in the format of
 * docker's config.json: it lies there while the image is fetched, and nowhere else. Throws the contract's errors of images.
 */
export async function pullImage(
  { skopeo, user, auth }: { skopeo: string; user: Identity | null; auth: string | undefined },
  reference: string,
  directory: string,
  onProgress: (line: string) => void,
): Promise<PulledImage> {
  await mkdir(directory, { mode: 0o700 });
  await ownedDirectory(directory, user?.uid ?? 0, user?.uid ?? 0);
  const layout = join(directory, "layout");
  const authFile = join(directory, "registries.json");
  await writeFile(authFile, auth ?? NO_AUTH, { mode: 0o600 });
  await ownFile(authFile, user?.uid ?? 0);
  const skopeoArgv = (mostFileBytes: number, argv: readonly string[]) =>
    asHelper(user, mostFileBytes, [
      skopeo,
      "--insecure-policy",
      "--tmpdir",
      directory,
      ...argv,
      "--authfile",
      authFile,
    ]);
  const copy = async (from: string) => {
    const platform = ["--override-os", "linux", "--override-arch", "amd64"];
    const argv = skopeoArgv(MOST_BYTES, ["copy", ...platform, from, `oci:${layout}:${IMAGE_NAME}`]);
    const tell = (line: string) => {
      if (line.startsWith("Copying")) onProgress(`${line.charAt(0).toLowerCase()}${line.slice(1)}`);
    };
    await runWithProgress(argv, tell, COPY_DEADLINE_MS).catch(refuse);
  };
  const local = localImage(reference);
  if (local) {
    const at = join(directory, "given");
    await copyIn(local.path, at);
    await ownTree(at, user?.uid ?? 0);
    await copy(`${local.transport}:${at}${local.name}`);
    for (const used of [at, authFile]) await rm(used, { recursive: true });
    return { ...(await readLayout(layout, MOST_BYTES)), index_digest: null, layout };
  }
  // As it is stored, to the byte: its digest names it.
  const inspect = async (from: string) =>
    await runProgram(skopeoArgv(MOST_JSON_BYTES, ["inspect", "--raw", from]), ASK_DEADLINE_MS).catch(refuse);
  const named = await inspect(reference);
  const first = readIndexOrManifest(named);
  const isIndex = "manifests" in first;
  // By digest from here on: what the name means may change meanwhile.
  const manifest_digest = isIndex ? platformManifest(first) : digestOf(named);
  const pinned = `${repositoryOf(reference)}@${manifest_digest}`;
  const image = isIndex ? readIndexOrManifest(await inspect(pinned)) : first;
  if ("manifests" in image)
    throw new ServiceError("image_invalid", { detail: "The image is an index within an index." });
  layerBytes(image, MOST_BYTES);
  await copy(pinned);
  await rm(authFile);
  const facts = await readLayout(layout, MOST_BYTES);
  return { ...facts, manifest_digest, index_digest: isIndex ? digestOf(named) : null, layout };
}

/** What the operator has named, which skopeo's user may not be able to read. */
async function copyIn(from: string, to: string): Promise<void> {
  try {
    await cp(from, to, { recursive: true });
  } catch (error) {
    throw new ServiceError("image_not_found", { detail: `There is no image to be read at ${from}.`, cause: error });
  }
}

/** What the shell's programs end with where there is no such program. */
const NO_PROGRAM = /prlimit: failed to execute/;
/** skopeo's words, by what they are about; the rest is a failed build. */
const MEANINGS = [
  ["image_invalid", /loading tar component|tar header/i],
  ["registry_rate_limited", /toomanyrequests|too many requests|\b429\b/i],
  ["image_unauthorized", /unauthorized|authentication required|\bdenied\b|\b40[13]\b|invalid username/i],
  [
    "image_not_found",
    /manifest unknown|name unknown|name invalid|not found|no such file|no descriptor found|does not exist|\b404\b/i,
  ],
  ["image_too_large", /file too large|no space left/i],
  ["image_invalid", /digest|unsupported|unknown media type|invalid character|unmarshal|manifest/i],
] as const;

function refuse(error: unknown): never {
  throw error instanceof ProgramFailed ? translated(error) : error;
}

function translated({ said }: ProgramFailed): ServiceError {
  if (NO_PROGRAM.test(said)) {
    throw new ServiceError("build_failed", {
      detail: "This host has no skopeo, which fetches images.",
      hint: "Install it: `apt install skopeo`. Elsewhere than in PATH: set host.skopeo.",
    });
  }
  const lines = said.trim().split("\n").slice(-5);
  const [code] = MEANINGS.find(([, words]) => words.test(said)) ?? ["build_failed"];
  return new ServiceError(code, {
    detail: "The image could not be fetched.",
    details: { step: "pull", last_lines: lines.map((line) => line.slice(0, 500)) },
    ...(code === "build_failed" && { hint: "Look at details.last_lines: whether this host reaches the registry." }),
  });
}
