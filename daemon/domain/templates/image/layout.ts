/**
 * Reader of an image (OCI image layout 1.0, image specification 1.1): its index, manifest and configuration, which are JSON of bounded
 * size. Layers are never opened on the host.
 */

import { createHash } from "node:crypto";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { ImageDefaults } from "../../../../shared/agent-protocol/messages.ts";
import { parseJson as parseBounded } from "../../../core/json.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** Maximum size of an index, a manifest or a configuration; registries refuse larger ones. */
export const MAX_JSON_BYTES = 4 * 1024 * 1024;
/** The number of layers that overlay file systems can stack, so that images have no more. */
const MAX_LAYERS = 127;
const MAX_ENV = 1024;
/** Name of the image in layouts made by the daemon. */
export const IMAGE_NAME = "image";
export const INDEX_FILE = "index.json";

const digest = Type.String({ pattern: "^sha256:[0-9a-f]{64}$" });
const descriptor = Type.Object({
  mediaType: Type.Optional(Type.String()),
  digest,
  size: Type.Integer({ minimum: 0 }),
  /** Alternative URLs, which are not used. */
  urls: Type.Optional(Type.Union([Type.Array(Type.Unknown(), { maxItems: 0 }), Type.Null()])),
  platform: Type.Optional(
    Type.Object({ os: Type.Optional(Type.String()), architecture: Type.Optional(Type.String()) }),
  ),
});
const index = Type.Object({ manifests: Type.Array(descriptor, { maxItems: 1024 }) });
const manifest = Type.Object({ config: descriptor, layers: Type.Array(descriptor, { maxItems: MAX_LAYERS }) });
const text = (maxLength: number) => Type.Union([Type.String({ maxLength }), Type.Null()]);
const list = Type.Union([Type.Array(Type.String({ maxLength: 65_536 }), { maxItems: MAX_ENV }), Type.Null()]);
const config = Type.Object({
  os: Type.Optional(Type.String()),
  architecture: Type.Optional(Type.String()),
  config: Type.Optional(
    Type.Object({
      Env: Type.Optional(list),
      WorkingDir: Type.Optional(text(4096)),
      User: Type.Optional(text(256)),
      Entrypoint: Type.Optional(list),
      Cmd: Type.Optional(list),
    }),
  ),
  rootfs: Type.Object({ diff_ids: Type.Array(digest, { maxItems: MAX_LAYERS }) }),
});

export type ImageIndex = Static<typeof index>;
export type ImageManifest = Static<typeof manifest>;

export interface ImageFacts {
  manifest_digest: string;
  config_digest: string;
  defaults: ImageDefaults;
  /** The start of `start`; the rest of that are arguments, which may be replaced. */
  entrypoint: string[];
}

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** The index or the manifest in `json`. Throws image_invalid if it is neither. */
export function readIndexOrManifest(json: string): ImageIndex | ImageManifest {
  const value = parseJson(json, "manifest");
  return Value.Check(index, value) ? value : checked(manifest, value, "manifest");
}

/** Digest of the manifest for this platform. Throws image_not_found. */
export function platformManifest({ manifests }: ImageIndex): string {
  const found = manifests.find(({ platform }) => platform?.os === "linux" && platform.architecture === "amd64");
  if (found) return found.digest;
  throw new ServiceError("image_not_found", { detail: "The image is not available for linux/amd64." });
}

/** Total size of the layers as stored. Throws image_too_large above `mostBytes`. */
export function layerBytes({ layers }: ImageManifest, mostBytes: number): number {
  const bytes = layers.reduce((sum, { size }) => sum + size, 0);
  if (bytes <= mostBytes) return bytes;
  const mib = (value: number) => Math.ceil(value / 1024 ** 2);
  throw new ServiceError("image_too_large", {
    detail: `The image's layers have ${mib(bytes)} MiB; at most ${mib(mostBytes)} are taken.`,
  });
}

export interface ImageFiles {
  /** Descriptor of the image in its index. */
  named: Static<typeof descriptor>;
  image: ImageManifest;
  about: Static<typeof config>;
}

/** Files of the image in a layout made by the daemon; each layer has its name. Throws image_invalid. */
export async function readFiles(directory: string): Promise<ImageFiles> {
  const read = async (path: string) => await readBounded(join(directory, path));
  const { manifests } = checked(index, parseJson(await read(INDEX_FILE), "index"), "index");
  const [named] = manifests;
  if (!named || manifests.length > 1) throw invalid("its index names no image, or several");
  const image = checked(manifest, parseJson(await read(blobFile(named.digest)), "manifest"), "manifest");
  const about = checked(config, parseJson(await read(blobFile(image.config.digest)), "configuration"), "configuration");
  if (about.rootfs.diff_ids.length !== image.layers.length) {
    throw invalid(
      `its configuration names ${about.rootfs.diff_ids.length} layers, its manifest ${image.layers.length}`,
    );
  }
  return { named, image, about };
}

/** Reads the image in a layout made by the daemon. Throws image_invalid or image_too_large. */
export async function readLayout(directory: string, mostBytes: number): Promise<ImageFacts> {
  const { named, image, about } = await readFiles(directory);
  layerBytes(image, mostBytes);
  for (const { digest, size } of image.layers) {
    const there = lstatSync(join(directory, blobFile(digest)), { throwIfNoEntry: false });
    if (!there?.isFile() || there.size !== size)
      throw invalid(`layer ${digest} does not have the size declared in the manifest`);
  }
  if ((about.os ?? "linux") !== "linux" || (about.architecture ?? "amd64") !== "amd64") {
    throw invalid(`it is for ${printableName(about.os)}/${printableName(about.architecture)}, not for linux/amd64`);
  }
  return {
    manifest_digest: named.digest,
    config_digest: image.config.digest,
    defaults: defaultsOf(about),
    entrypoint: about.config?.Entrypoint ?? [],
  };
}

function defaultsOf({ config: imageConfig = {} }: Static<typeof config>): ImageDefaults {
  const pairs = (imageConfig.Env ?? []).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  });
  if (pairs.some(([name, value]) => name === "" || `${name}${value}`.includes("\0"))) {
    throw invalid("its environment has an entry without a name, or with NUL");
  }
  const cwd = imageConfig.WorkingDir || null;
  if (cwd !== null && (!cwd.startsWith("/") || cwd.includes("\0"))) throw invalid("its WorkingDir is not absolute");
  const user = imageConfig.User || null;
  if (user !== null && !/^[A-Za-z0-9_.][\w.-]*(:[A-Za-z0-9_.][\w.-]*)?$/.test(user)) {
    throw invalid("its User is not a user name or number");
  }
  const argv = [...(imageConfig.Entrypoint ?? []), ...(imageConfig.Cmd ?? [])];
  if (argv.some((word) => word.includes("\0"))) throw invalid("its entry point has a word with NUL");
  return { env: Object.fromEntries(pairs), cwd, user, start: argv.length === 0 ? null : argv };
}

/** Path of a blob in a layout. */
export const blobFile = (digest: string): string => join("blobs", "sha256", digest.slice("sha256:".length));

async function readBounded(path: string): Promise<string> {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there?.isFile() || there.size > MAX_JSON_BYTES) throw invalid("a part of it is missing or too large");
  return await Bun.file(path).text();
}

function parseJson(json: string, subject: string): unknown {
  if (json.length > MAX_JSON_BYTES) throw invalid(`its ${subject} is too large`);
  try {
    return parseBounded(json);
  } catch {
    throw invalid(`its ${subject} is not JSON`);
  }
}

function checked<T extends TSchema>(schema: T, value: unknown, subject: string): Static<T> {
  if (Value.Check(schema, value)) return value;
  const first = Value.Errors(schema, value).First();
  throw invalid(`its ${subject} is not one (${first?.path || "/"}: ${first?.message ?? "wrong"})`);
}

const printableName = (name: string | undefined) => (/^[\w.-]{1,32}$/.test(name ?? "") ? name : "something else");

function invalid(why: string): ServiceError {
  return new ServiceError("image_invalid", { detail: `The image cannot be used: ${why}.` });
}
