/** Settings of the terminal that this process runs in: every key as it is typed, every byte as it arrives. */
import { dlopen, FFIType } from "bun:ffi";

const { i32, pointer } = FFIType;
/** More than the size of struct termios on any Linux. */
const TERMIOS_BYTES = 128;
const TCSADRAIN = 1;

/**
 * Makes a terminal raw; the returned function restores it, and is idempotent. Not by setRawMode, which continues to write a return before
 * every new line. Throws if the descriptor is not a terminal.
 */
export function makeRaw(fd: number): () => void {
  const { symbols: libc } = dlopen("libc.so.6", {
    tcgetattr: { args: [i32, pointer], returns: i32 },
    tcsetattr: { args: [i32, i32, pointer], returns: i32 },
    cfmakeraw: { args: [pointer], returns: FFIType.void },
  });
  const before = new Uint8Array(TERMIOS_BYTES);
  if (libc.tcgetattr(fd, before) !== 0) throw new Error(`descriptor ${fd} is not a terminal`);
  const raw = before.slice();
  libc.cfmakeraw(raw);
  if (libc.tcsetattr(fd, TCSADRAIN, raw) !== 0) throw new Error("the terminal cannot be made raw");
  let isRaw = true;
  return () => {
    if (isRaw) libc.tcsetattr(fd, TCSADRAIN, before);
    isRaw = false;
  };
}
