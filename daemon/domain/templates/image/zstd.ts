/**
 * Images with layers packed by zstd, which umoci (0.4.7) does not support. The guest that unpacks an image gets a second manifest, in which
 * each of these layers is its unpacked form, by the digest in the configuration. In the guest zstd unpacks them, one after the other, while
 * umoci reads; the host opens none of them. The image's own manifest stays as it was fetched.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { blobFile, digestOf, type ImageFiles, INDEX_FILE } from "./layout.ts";

/**
 * File in which unpacker-init reads the list of these layers, a line each in the order of the image: digest as stored, digest of the
 * unpacked content.
 */
const LIST_FILE = "layers";
const PLAIN = "application/vnd.oci.image.layer.v1.tar";
/** umoci's value for an unknown size. */
const UNKNOWN_SIZE = -1;

/**
 * Writes into `directory`, which it creates, the files that unpacker-init puts over the image's layout; none if no layer is packed by zstd.
 */
export async function writePlainManifest({ named, image, about }: ImageFiles, directory: string): Promise<void> {
  if (!image.layers.some(isZstd)) return;
  const stored = new Set(image.layers.map(({ digest }) => digest));
  const list: string[] = [];
  const layers = image.layers.map((layer, at) => {
    if (!isZstd(layer)) return layer;
    const digest = about.rootfs.diff_ids[at] ?? "";
    // A blob that is already stored under that digest is the same.
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
