/**
 * Owns images with layers that are packed by zstd, of which umoci (0.4.7) knows nothing. The guest that unpacks an image is given a second
 * manifest, in which each of these layers is what it unpacks to, by the digest that the configuration has for that. There zstd unpacks them,
 * one after the other, while umoci reads; the host opens none of them. The image's own manifest stays as it was fetched.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { blobFile, digestOf, type ImageFiles, INDEX_FILE } from "./layout.ts";

/** Where unpacker-init reads which layers they are, a line each in the order of the image: digest as stored, digest of what is in it. */
const LIST_FILE = "layers";
const PLAIN = "application/vnd.oci.image.layer.v1.tar";
/** umoci's word for a size that nobody knows. */
const UNKNOWN_SIZE = -1;

/** Writes into `directory`, which is made, what unpacker-init puts over the image's layout; nothing where no layer is packed so. */
export async function writePlainManifest({ named, image, about }: ImageFiles, directory: string): Promise<void> {
  if (!image.layers.some(isZstd)) return;
  const stored = new Set(image.layers.map(({ digest }) => digest));
  const list: string[] = [];
  const layers = image.layers.map((layer, at) => {
    if (!isZstd(layer)) return layer;
    const digest = about.rootfs.diff_ids[at] ?? "";
    // What lies there already under that name is the same.
    if (!stored.has(digest)) list.push(`${hexOf(layer.digest)} ${hexOf(digest)}\n`);
    return { mediaType: PLAIN, digest, size: UNKNOWN_SIZE };
  });
  const manifest = JSON.stringify({ ...image, layers });
  const digest = digestOf(manifest);
  const index = { schemaVersion: 2, manifests: [{ ...named, digest, size: Buffer.byteLength(manifest) }] };
  await mkdir(dirname(join(directory, blobFile(digest))), { recursive: true });
  await writeFile(join(directory, blobFile(digest)), manifest);
  await writeFile(join(directory, INDEX_FILE), JSON.stringify(index));
  await writeFile(join(directory, LIST_FILE), list.join(""));
}

const isZstd = ({ mediaType }: { mediaType?: string }): boolean => mediaType?.endsWith("+zstd") ?? false;
const hexOf = (digest: string) => digest.slice("sha256:".length);
