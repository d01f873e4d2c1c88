/**
 * Buffer of bytes to inspect: added at the end, taken from the front. However they arrive, each is copied and searched a few times at most.
 */
export class Pending {
  #room: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  #needle = "";
  /** The bytes before this position contain no needle. */
  #searchedTo = 0;

  get byteLength(): number {
    return this.#end - this.#start;
  }

  /** The pending bytes; the view does not change when more are added. */
  get bytes(): Buffer {
    return this.#room.subarray(this.#start, this.#end);
  }

  push(more: Buffer): void {
    if (this.byteLength === 0) {
      // Usually all is taken in one call, and needs no copy. Its end is its buffer's end: nothing is ever written there.
      this.#room = more;
      this.#start = 0;
      this.#end = more.byteLength;
      this.#searchedTo = 0;
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

  take(count: number): Buffer {
    const taken = this.bytes.subarray(0, count);
    this.#start += taken.byteLength;
    this.#searchedTo = this.#start;
    return taken;
  }

  startsWith(text: string): boolean {
    return this.bytes.subarray(0, text.length).toString("latin1") === text;
  }

  /** Position of these characters; -1 if they have not arrived yet. */
  find(needle: string): number {
    if (needle !== this.#needle) this.#searchedTo = this.#start;
    this.#needle = needle;
    const from = Math.max(this.#start, this.#searchedTo - needle.length + 1);
    const at = this.#room.subarray(0, this.#end).indexOf(needle, from, "latin1");
    this.#searchedTo = at === -1 ? this.#end : at;
    return at === -1 ? -1 : at - this.#start;
  }
}
