/**
 * Fetch of an image to this host: skopeo, as a user that owns nothing else and within limits of size and time, writes it to an OCI image
 * layout. Layers are compared with their declared digests as they arrive; their content is read only in a guest.
 */

import { lstatSync, statSync } from "node:fs";
import { copyFile, lstat, mkdir, opendir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repeat } from "../../../core/concurrency/repeat.ts";
import { parseJson } from "../../../core/json.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { asHelper, withoutNetwork } from "../../../host/isolation/argv.ts";
import { crossedDirectory, ownedDirectory, ownFile, ownTree } from "../../../host/isolation/directories.ts";
import type { Identity } from "../../../host/isolation/ids.ts";
import { ProgramFailed, runProgram, runWithProgress } from "../../../host/process.ts";
import {
  digestOf,
  IMAGE_NAME,
  type ImageFacts,
  layerBytes,
  MAX_JSON_BYTES,
  platformManifest,
  readIndexOrManifest,
  readLayout,
} from "./layout.ts";
import { type FetchNetwork, NO_NETWORK } from "./network.ts";
import { type LocalImage, localImage, repositoryOf } from "./reference.ts";

/** As the layers are stored. */
const MAX_BYTES = 8 * 1024 ** 3;
/** Maximum entries of a local layout. */
const MAX_ENTRIES = 10_000;
const ASK_DEADLINE_MS = 60_000;
const COPY_DEADLINE_MS = 60 * 60_000;
/** Interval of measuring the fetched files, and their allowance in addition to the layers: JSON and directories. */
const LOOK_MS = 250;
const SLACK_BYTES = 16 * 1024 ** 2;

export interface PulledImage extends ImageFacts {
  /** Null if the image was not from a registry, or not multi-platform. */
  index_digest: string | null;
  /** Null: the image was known, and was not fetched. */
  layout: string | null;
}

export interface PullDeps {
  skopeo: string;
  /** User of skopeo; null: the daemon's own. */
  user: Identity | null;
  auth: string | undefined;
  /** Network for fetching; null: this host's. */
  network: FetchNetwork | null;
  /** Throws disk_full if there is no room for this many bytes. */
  requireSpace(bytes: number): void;
  /** Facts about an image if its layers are not needed; null: they are needed. */
  known(manifest_digest: string): Promise<ImageFacts | null>;
}

/**
 * Fetches the image into `directory`, which is created for it; the caller removes it. `auth` has the credentials of its registry, in the
 * format of docker's config.json: it is stored there while the image is fetched, and nowhere else. Throws the contract's errors of images.
 */
export async function pullImage(
  { skopeo, user, auth, network, requireSpace, known }: PullDeps,
  reference: string,
  directory: string,
  onProgress: (line: string) => void,
): Promise<PulledImage> {
  const credentials = credentialsIn(auth);
  await mkdir(directory, { mode: 0o700 });
  crossedDirectory(directory);
  // skopeo's user owns this directory and nothing above it: if skopeo is compromised, paths elsewhere remain ours.
  const own = join(directory, "fetch");
  await ownedDirectory(own, user?.uid ?? 0, user?.uid ?? 0);
  const authFile = join(own, "registries.json");
  await writeFile(authFile, credentials, { mode: 0o600, flag: "wx" });
  await ownFile(authFile, user?.uid ?? 0);
  const skopeoArgv = (mostFileBytes: number, argv: readonly string[]) =>
    asHelper(user, mostFileBytes, [skopeo, "--insecure-policy", "--tmpdir", own, ...argv, "--authfile", authFile]);
  const online = (argv: readonly string[]) => network?.within(argv) ?? argv;
  const copy = async (from: string, mostFileBytes: number, mostBytes: number, isLocal = false) => {
    const platform = ["--override-os", "linux", "--override-arch", "amd64"];
    const fetch = skopeoArgv(mostFileBytes, ["copy", ...platform, from, `oci:${join(own, "layout")}:${IMAGE_NAME}`]);
    // A local image is read without network, whatever addresses it names.
    const argv = isLocal ? withoutNetwork(fetch) : online(fetch);
    const tell = (line: string) => {
      if (line.startsWith("Copying")) onProgress(`${line.charAt(0).toLowerCase()}${line.slice(1)}`);
    };
    // skopeo writes a layer before it compares its size.
    const tooLong = new AbortController();
    const stop = repeat(LOOK_MS, async () => {
      if ((await bytesIn(own)) <= mostBytes + SLACK_BYTES) return;
      tooLong.abort(
        new ServiceError("image_too_large", { detail: "The registry sends more than the image's manifest declares." }),
      );
    });
    try {
      await runWithProgress(argv, tell, COPY_DEADLINE_MS, tooLong.signal).catch(refuse(network));
    } finally {
      stop();
    }
  };
  /** Moves the layout out of skopeo's directory, and reads it. */
  const taken = async () => {
    const layout = join(directory, "layout");
    await rename(join(own, "layout"), layout);
    await rm(own, { recursive: true, force: true });
    if (!lstatSync(layout).isDirectory())
      throw new ServiceError("image_invalid", { detail: "The image has no layout." });
    await ownTree(layout, 0);
    return { ...(await readLayout(layout, MAX_BYTES)), layout };
  };
  const local = localImage(reference);
  if (local) {
    const at = join(own, "given");
    await copyIn(local, at, requireSpace);
    await ownTree(at, user?.uid ?? 0);
    // The given image and its copy share the directory, hence the higher limit.
    await copy(`${local.transport}:${at}${local.name}`, MAX_BYTES, 3 * MAX_BYTES, true);
    return { ...(await taken()), index_digest: null };
  }
  // Unmodified bytes, as stored: the digest is computed over them.
  const inspect = async (from: string) =>
    await runProgram(online(skopeoArgv(MAX_JSON_BYTES, ["inspect", "--raw", from])), ASK_DEADLINE_MS).catch(
      refuse(network),
    );
  const named = await inspect(reference);
  requireDigest(reference, named);
  const first = readIndexOrManifest(named);
  const isIndex = "manifests" in first;
  // By digest from here on: the tag may be changed in the meantime.
  const manifest_digest = isIndex ? platformManifest(first) : digestOf(named);
  const pinned = `${repositoryOf(reference)}@${manifest_digest}`;
  const image = isIndex ? readIndexOrManifest(await inspectPinned(inspect, pinned)) : first;
  if ("manifests" in image)
    throw new ServiceError("image_invalid", { detail: "The image is an index within an index." });
  const index_digest = isIndex ? digestOf(named) : null;
  // The registry has just granted access to the manifest: the requester may have the image.
  const facts = await known(manifest_digest);
  if (facts !== null) return { ...facts, index_digest, layout: null };
  // Space for the layers as stored, and again packed for the guest that unpacks them.
  const bytes = layerBytes(image, MAX_BYTES);
  requireSpace(2 * bytes);
  // Limits each part to its declared size.
  const largest = Math.max(...[image.config, ...image.layers].map(({ size }) => size));
  await copy(pinned, Math.max(largest, MAX_JSON_BYTES), 2 * bytes + MAX_JSON_BYTES);
  return { ...(await taken()), manifest_digest, index_digest };
}

/** Size of the directory's files in bytes; files removed during the scan count as 0. */
async function bytesIn(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => (await lstat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The JSON, checked against its digest. skopeo before 1.20 shows whatever a registry sends. */
async function inspectPinned(inspect: (from: string) => Promise<string>, pinned: string): Promise<string> {
  const json = await inspect(pinned);
  requireDigest(pinned, json);
  return json;
}

/** Throws image_invalid if the reference has a digest and that of `json` differs. */
function requireDigest(reference: string, json: string): void {
  const [, expected] = /@(sha256:[0-9a-f]{64})$/.exec(reference) ?? [];
  if (expected === undefined || digestOf(json) === expected) return;
  throw new ServiceError("image_invalid", { detail: `The registry did not send ${expected}.` });
}

/** Keeps only the credentials of docker's config.json: the rest names programs. Throws validation_failed. */
function credentialsIn(text: string | undefined): string {
  if (text === undefined) return "{}";
  try {
    const { auths = {} } = parseJson(text) as { auths?: unknown };
    return JSON.stringify({ auths });
  } catch {
    throw new ServiceError("validation_failed", {
      detail: "The registry credentials are not in the format of docker's config.json.",
    });
  }
}

/**
 * Copies an image that the operator has named, which skopeo's user may not be able to read. Throws image_not_found, image_too_large,
 * image_invalid.
 */
async function copyIn(
  { transport, path }: LocalImage,
  to: string,
  requireSpace: PullDeps["requireSpace"],
): Promise<void> {
  const notFound = (cause?: unknown) =>
    new ServiceError("image_not_found", { detail: `There is no readable image at ${path}.`, cause });
  const files: [from: string, to: string][] = [];
  const directories: string[] = [];
  let bytes = 0;
  const take = (from: string, into: string, size: number) => {
    files.push([from, into]);
    bytes += size;
    if (bytes > MAX_BYTES || files.length + directories.length > MAX_ENTRIES) {
      throw new ServiceError("image_too_large", {
        detail: `The image at ${path} has more than 8 GiB, or too many files.`,
      });
    }
  };
  const walk = async (from: string, into: string): Promise<void> => {
    directories.push(into);
    for await (const { name } of await opendir(from)) {
      const [there, here] = [join(from, name), join(into, name)];
      const facts = lstatSync(there);
      if (facts.isDirectory()) await walk(there, here);
      else if (facts.isFile()) take(there, here, facts.size);
      else throw new ServiceError("image_invalid", { detail: `${there} is neither a file nor a directory.` });
    }
  };
  try {
    const facts = statSync(path);
    const isLayout = transport === "oci";
    // A directory that is not an image is not searched.
    if (isLayout ? !lstatSync(join(path, "oci-layout")).isFile() : !facts.isFile()) throw notFound();
    if (isLayout) await walk(path, to);
    else take(path, to, facts.size);
    requireSpace(3 * bytes);
    for (const directory of directories) await mkdir(directory, { mode: 0o700 });
    for (const [from, into] of files) await copyFile(from, into);
  } catch (error) {
    throw error instanceof ServiceError ? error : notFound(error);
  }
}

/** Message of prlimit if there is no such program. */
const NO_PROGRAM = /prlimit: failed to execute/;
/** Patterns in skopeo's messages, by error; any other message is a failed build. */
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

const refuse =
  (network: FetchNetwork | null) =>
  (error: unknown): never => {
    if (!(error instanceof ProgramFailed)) throw error;
    if (error.said.includes(NO_NETWORK)) {
      throw new ServiceError("build_failed", {
        detail: `The image could not be fetched: ${NO_NETWORK}.`,
        details: { step: "pull", last_lines: lastLines(error.said) },
        hint: "The service needs CAP_NET_ADMIN, as its unit has it, and the program ip of iproute2.",
      });
    }
    const refused = [...(network?.refused ?? [])];
    throw refused.length === 0 ? translated(error) : ledAstray(error, refused);
  };

/** For a refused target: does not distinguish whether a redirect or the reference named it; the organization may reach neither. */
function ledAstray({ said }: ProgramFailed, refused: readonly string[]): ServiceError {
  return new ServiceError("build_failed", {
    detail: `The image could not be fetched: ${refused[0]} is not a public address, or the name does not exist.`,
    details: { step: "pull", last_lines: lastLines(said), refused },
    hint: "Use a registry at a public https address, or have the operator list this registry in template.registries.",
  });
}

const lastLines = (output: string) =>
  output
    .trim()
    .split("\n")
    .slice(-5)
    .map((line) => line.slice(0, 500));

function translated({ said }: ProgramFailed): ServiceError {
  if (NO_PROGRAM.test(said)) {
    return new ServiceError("build_failed", {
      detail: "This host has no skopeo, which fetches images.",
      hint: "Install it: `apt install skopeo`. Elsewhere than in PATH: set host.skopeo.",
    });
  }
  const [code] = MEANINGS.find(([, words]) => words.test(said)) ?? ["build_failed"];
  return new ServiceError(code, {
    detail: "The image could not be fetched.",
    details: { step: "pull", last_lines: lastLines(said) },
    ...(code === "build_failed" && {
      hint: "Check whether this host reaches the registry: the last lines have the refusal.",
    }),
  });
}
