/** Pumps bytes between an SSH channel and its command or port in the guest, with backpressure in both directions. */
import type { ServerChannel } from "ssh2";
import type { ChannelWriter } from "./channel-writer.ts";

export interface Input {
  write(bytes: Uint8Array): Promise<void>;
  endInput(): void;
}

/** Copies from the client to the guest. Not by the channel's own iterator, which closes the channel at the end of input. */
export function feed(channel: ServerChannel, to: Input, count: (bytes: number) => void): void {
  let taken: Promise<unknown> = Promise.resolve();
  channel.on("data", (bytes: Buffer) => {
    count(bytes.byteLength);
    channel.pause();
    const resume = () => void channel.resume();
    taken = to.write(bytes).then(resume, resume);
  });
  // The channel reports its end before its last bytes are consumed.
  channel.once("end", () => void taken.then(() => to.endInput()));
}

/** Copies from the guest to the client, until either side ends. */
export async function drain(
  from: AsyncIterable<Uint8Array>,
  write: ChannelWriter["out"],
  count: (bytes: number) => void,
): Promise<void> {
  for await (const bytes of from) {
    count(bytes.byteLength);
    if (!(await write(bytes))) return;
  }
}
