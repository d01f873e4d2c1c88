/**
 * Encrypted format of a backup outside of the host, with a key from a passphrase. A stream of:
 *
 *     "roomd-backup/1\n"               magic
 *     cost (1 byte), salt (16 bytes)   scrypt(passphrase, salt, N = 2^cost, r = 8, p = 1) makes 48 bytes:
 *     check (16 bytes)                 32 of the key, and these, which detect a wrong passphrase
 *     pieces                           AES-256-GCM of 64 KiB each, the last of the remainder, with its tag of 16 bytes
 *
 * A piece's nonce is its number (11 bytes) and whether it is the last (1 byte); the header before the pieces is authenticated with each. So
 * a changed, omitted, moved or truncated piece is detected. Every backup has a salt, and so a key, of its own.
 */
import { createCipheriv, createDecipheriv, randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { type Piece, piecesOf } from "./pieces.ts";

const MAGIC = Buffer.from("roomd-backup/1\n");
const SALT_BYTES = 16;
const CHECK_BYTES = 16;
const KEY_BYTES = 32;
export const HEADER_BYTES = MAGIC.length + 1 + SALT_BYTES + CHECK_BYTES;
export const PIECE_BYTES = 64 * 1024;
const TAG_BYTES = 16;
/** Salt that no key uses: 16 bytes that are not random. */
const MARK_SALT = Buffer.from("roomd-passphrase");
/** With this cost scrypt temporarily takes 64 MiB. */
const COST = 16;
/** A header from an untrusted source must not exhaust memory. */
const MAX_COST = 20;
const CIPHER = "aes-256-gcm";

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);

/** The passphrase differs, or the header was changed. */
export class WrongPassphrase extends Error {
  override name = "WrongPassphrase";
}

/** The content is not, or no longer, that of a written backup. */
export class BrokenBackup extends Error {
  override name = "BrokenBackup";
}

/** A mark by which two passphrases can be compared for equality. It is as hard to brute-force as the encrypted backup. */
export async function markOf(passphrase: string): Promise<string> {
  const { check } = await keyOf(passphrase, MARK_SALT, COST);
  return check.toString("hex");
}

/** Yields the source's bytes, encrypted. */
export async function* sealed(source: AsyncIterable<Uint8Array>, passphrase: string): AsyncGenerator<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  const { key, check } = await keyOf(passphrase, salt, COST);
  const header = Buffer.concat([MAGIC, Buffer.of(COST), salt, check]);
  yield header;
  let number = 0;
  for await (const { bytes, isLast } of piecesOf(source, () => PIECE_BYTES)) {
    const cipher = createCipheriv(CIPHER, key, nonceOf(number++, isLast)).setAAD(header);
    yield Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  }
}

/** Length of the sealed form of `bytes` bytes. */
export const sealedBytes = (bytes: number): number =>
  HEADER_BYTES + bytes + Math.max(1, Math.ceil(bytes / PIECE_BYTES)) * TAG_BYTES;

/** Yields the decrypted bytes, each piece after it was authenticated. Throws WrongPassphrase, BrokenBackup. */
export async function* opened(source: AsyncIterable<Uint8Array>, passphrase: string): AsyncGenerator<Buffer> {
  const pieces = piecesOf(source, (number) => (number === 0 ? HEADER_BYTES : PIECE_BYTES + TAG_BYTES));
  const header = (await pieces.next()).value as Piece;
  const key = await keyFor(header.bytes, passphrase);
  let number = 0;
  for await (const { bytes, isLast } of pieces) {
    if (bytes.length < TAG_BYTES) throw new BrokenBackup("it is truncated");
    const decipher = createDecipheriv(CIPHER, key, nonceOf(number, isLast)).setAAD(header.bytes);
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    yield finished(decipher, bytes.subarray(0, -TAG_BYTES), number++);
  }
  if (number === 0) throw new BrokenBackup("it is truncated");
}

function finished(decipher: ReturnType<typeof createDecipheriv>, bytes: Buffer, number: number): Buffer {
  try {
    return Buffer.concat([decipher.update(bytes), decipher.final()]);
  } catch (cause) {
    const at = `${Math.floor((number * PIECE_BYTES) / 1024 ** 2)} MiB`;
    throw new BrokenBackup(`it was changed or truncated at ${at}`, { cause });
  }
}

async function keyFor(header: Buffer, passphrase: string): Promise<Buffer> {
  if (header.length < HEADER_BYTES || !header.subarray(0, MAGIC.length).equals(MAGIC))
    throw new BrokenBackup("it does not begin with the header of this backup format");
  const cost = header[MAGIC.length] ?? 0;
  if (cost < 1 || cost > MAX_COST) throw new BrokenBackup("its key derivation needs more memory than allowed");
  const salt = header.subarray(MAGIC.length + 1, MAGIC.length + 1 + SALT_BYTES);
  const { key, check } = await keyOf(passphrase, salt, cost);
  if (timingSafeEqual(check, header.subarray(-CHECK_BYTES))) return key;
  throw new WrongPassphrase("it was encrypted with another passphrase, or its first bytes were changed");
}

async function keyOf(passphrase: string, salt: Buffer, cost: number): Promise<{ key: Buffer; check: Buffer }> {
  const how = { N: 2 ** cost, r: 8, p: 1, maxmem: 2 * 1024 ** 3 };
  const made = await derive(passphrase, salt, KEY_BYTES + CHECK_BYTES, how);
  return { key: made.subarray(0, KEY_BYTES), check: made.subarray(KEY_BYTES) };
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeBigUInt64BE(BigInt(number), 3);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}
