/** Matches topics against patterns: * matches one word, a final > matches all remaining words. Pure. */

const DOT = 46;
const ANY = 42;
const REST = 62;

/** Compares the words in place, without splitting: a message to a topic is matched against every pattern of its room. */
export function matchesTopic(pattern: string, topic: string): boolean {
  let from = 0;
  let at = 0;
  for (;;) {
    const expected = pattern.charCodeAt(from);
    if (expected === REST && from === pattern.length - 1) return true;
    const end = endOfWord(topic, at);
    if (expected === ANY && isEnd(pattern, from + 1)) {
      from++;
      at = end;
    } else {
      while (at < end && pattern.charCodeAt(from) === topic.charCodeAt(at)) {
        from++;
        at++;
      }
      if (at < end || !isEnd(pattern, from)) return false;
    }
    const isOver = at === topic.length;
    if (isOver || from === pattern.length) return isOver && from === pattern.length;
    from++;
    at++;
  }
}

const isEnd = (text: string, at: number) => at === text.length || text.charCodeAt(at) === DOT;

function endOfWord(text: string, at: number): number {
  const end = text.indexOf(".", at);
  return end === -1 ? text.length : end;
}
