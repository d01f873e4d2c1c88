/**
 * Buffer of received bytes: added at the end, taken from the front. However they arrive, each is copied and searched a few times at most.
 */

const EMPTY = Buffer.alloc(0);

export class ByteQueue {
  #room: Buffer = EMPTY;
  #start = 0;
  #end = 0;
  /** The bytes before this position were searched for a line feed. */
  #searchedTo = 0;

  get byteLength(): number {
    return this.#end - this.#start;
  }

  /** All bytes in the queue; the view does not change when more are added. */
  get bytes(): Buffer {
    return this.#room.subarray(this.#start, this.#end);
  }

  push(more: Uint8Array): void {
    if (this.byteLength === 0) {
      // Usually all is taken in one call, and needs no copy. Its end is its buffer's end: nothing is ever written there.
      this.#reset(Buffer.from(more.buffer, more.byteOffset, more.byteLength));
      return;
    }
    if (this.#end + more.byteLength > this.#room.byteLength) {
      const have = this.bytes;
      this.#room = Buffer.alloc(2 * (have.byteLength + more.byteLength));
      this.#room.set(have);
      this.#searchedTo -= this.#start;
      this.#start = 0;
      this.#end = have.byteLength;
    }
    this.#room.set(more, this.#end);
    this.#end += more.byteLength;
  }

  /** At most `count` bytes. */
  take(count: number): Buffer {
    const taken = this.#room.subarray(this.#start, Math.min(this.#start + count, this.#end));
    this.#start += taken.byteLength;
    if (this.byteLength === 0) this.#reset(EMPTY);
    return taken;
  }

  /** Position of the first line feed at or after `from`, which never decreases until bytes are taken; -1 if none has arrived. */
  findLineFeed(from: number): number {
    const begin = Math.max(this.#start + from, this.#searchedTo);
    const at = this.#room.subarray(begin, this.#end).indexOf(0x0a);
    this.#searchedTo = at === -1 ? this.#end : begin + at;
    return at === -1 ? -1 : this.#searchedTo - this.#start;
  }

  #reset(room: Buffer): void {
    this.#room = room;
    this.#start = 0;
    this.#end = room.byteLength;
    this.#searchedTo = 0;
  }
}
