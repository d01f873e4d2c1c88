/**
 * Packs the hub's files, as built by bun, into one file that the daemon embeds: a line of JSON that maps each name to the file's content,
 * compressed with brotli, in base64. The names contain content hashes.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const [from = "", to = ""] = process.argv.slice(2);
const packed: Record<string, string> = {};
for (const name of readdirSync(from).sort()) {
  const bytes = readFileSync(join(from, name));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength };
  packed[name] = brotliCompressSync(bytes, { params }).toString("base64");
}
writeFileSync(to, JSON.stringify(packed));
