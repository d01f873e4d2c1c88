/** Images written by tests: OCI image layouts (image specification 1.1) of declared layers. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { type Header, pack } from "tar-stream";

/** The only content of a container's image: one static program, which provides all commands. */
const BUSYBOX = "/bin/busybox";
const APPLETS = [
  "sh",
  "cat",
  "chmod",
  "env",
  "head",
  "hostname",
  "id",
  "ls",
  "mv",
  "readlink",
  "sleep",
  "stat",
  "true",
  "wget",
];

export type Entry = Pick<Header, "name"> & Partial<Header> & { content?: string | Buffer };

export interface LayerTraits {
  /** gzip by default. */
  packed?: "gzip" | "zstd";
  /** Stored instead of the compressed bytes that the digests are computed from. */
  stored?: Buffer;
  /** Replaces the digest of the uncompressed layer. */
  diffId?: string;
}

export type Layer = Entry[] | ({ entries: Entry[] } & LayerTraits);

export interface ImageConfig {
  Env?: string[];
  WorkingDir?: string;
  User?: string;
  Entrypoint?: string[];
  Cmd?: string[];
}

/** The root of an image that has a shell, and no libc. */
export function busyboxRoot(): Entry[] {
  return [
    { name: "bin", type: "directory", mode: 0o755 },
    { name: "bin/busybox", mode: 0o755, content: readFileSync(BUSYBOX) },
    ...APPLETS.map((name) => ({ name: `bin/${name}`, type: "symlink", linkname: "busybox" }) as const),
  ];
}

/** Writes the image `name` into a new directory, and returns its reference for `roomd template import`. */
export async function writeImage(
  directory: string,
  layers: readonly Layer[],
  config: ImageConfig = {},
  more: { diffIds?: string[]; platform?: { os: string; architecture: string } } = {},
): Promise<string> {
  mkdirSync(join(directory, "blobs", "sha256"), { recursive: true });
  const blob = (bytes: Buffer, stored = bytes) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    writeFileSync(join(directory, "blobs", "sha256", hex), stored);
    return { digest: `sha256:${hex}`, size: stored.byteLength };
  };
  const json = (value: unknown) => blob(Buffer.from(JSON.stringify(value)));
  const described: object[] = [];
  const diffIds: string[] = [];
  for (const layer of layers) {
    const given: { entries: Entry[] } & LayerTraits = Array.isArray(layer) ? { entries: layer } : layer;
    const { entries, packed = "gzip", stored, diffId } = given;
    const tar = await tarOf(entries);
    diffIds.push(diffId ?? `sha256:${createHash("sha256").update(tar).digest("hex")}`);
    const bytes = packed === "gzip" ? gzipSync(tar) : zstdCompressSync(tar);
    described.push({ mediaType: `application/vnd.oci.image.layer.v1.tar+${packed}`, ...blob(bytes, stored) });
  }
  const { os, architecture } = more.platform ?? { os: "linux", architecture: "amd64" };
  const about = json({ os, architecture, config, rootfs: { type: "layers", diff_ids: more.diffIds ?? diffIds } });
  const manifest = json({
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config: { mediaType: "application/vnd.oci.image.config.v1+json", ...about },
    layers: described,
  });
  const named = { mediaType: "application/vnd.oci.image.manifest.v1+json", ...manifest };
  const annotations = { "org.opencontainers.image.ref.name": "image" };
  const index = { schemaVersion: 2, manifests: [{ ...named, annotations }] };
  writeFileSync(join(directory, "index.json"), JSON.stringify(index));
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return `oci:${directory}:image`;
}

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content, ...header } of entries) {
    if (content === undefined) tar.entry({ size: 0, ...header });
    else tar.entry(header, content);
  }
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
