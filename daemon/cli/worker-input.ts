/** Owns what the daemon says to a process of its own: one line of JSON, and by the end of that input that it has ended. */

/** The first line; `over` is called at the end. */
export function workOf<Work>(input: NodeJS.ReadStream, over: () => void): Promise<Work> {
  return new Promise((resolve) => {
    let text = "";
    input.setEncoding("utf8");
    input.on("data", (piece: string) => {
      text += piece;
      if (text.endsWith("\n")) resolve(JSON.parse(text) as Work);
    });
    input.on("end", over);
  });
}
