/** Matches topics against patterns: * is one word, > at the end is all that follow. Pure. */
export function matchesTopic(pattern: string, topic: string): boolean {
  const wanted = pattern.split(".");
  const tokens = topic.split(".");
  for (const [index, token] of wanted.entries()) {
    if (token === ">" && index === wanted.length - 1) return tokens.length > index;
    if (index >= tokens.length || (token !== "*" && token !== tokens[index])) return false;
  }
  return wanted.length === tokens.length;
}
