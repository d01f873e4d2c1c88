/**
 * The thread that computes SHA-256. It receives the shared blocks of a hash, then the fill level of a block, and replies when it has hashed
 * that.
 */
import type { HashOrder, HashTold } from "./hash.ts";

declare const self: Worker;

const hashes = new Map<number, { blocks: Uint8Array; hash: Bun.CryptoHasher }>();

self.onmessage = ({ data: order }: MessageEvent<HashOrder>) => {
  const { id } = order;
  if (order.does === "begin") {
    hashes.set(id, { blocks: new Uint8Array(order.blocks), hash: new Bun.CryptoHasher("sha256") });
    return;
  }
  const known = hashes.get(id);
  if (order.does === "add") {
    known?.hash.update(known.blocks.subarray(order.at, order.at + order.bytes));
    tell({ id });
    return;
  }
  hashes.delete(id);
  if (order.does === "end") tell({ id, hex: known?.hash.digest("hex") ?? "" });
};

function tell(message: HashTold): void {
  postMessage(message);
}
