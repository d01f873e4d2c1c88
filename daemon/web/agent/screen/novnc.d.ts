/** Declares what of noVNC is used here; it has no types of its own. Its events are those of its docs/API.md. */
declare module "@novnc/novnc" {
  export default class RFB extends EventTarget {
    /** Draws into `target`, as large as that is. The socket may still be opening. */
    constructor(target: HTMLElement, channel: WebSocket, options?: { shared?: boolean });
    viewOnly: boolean;
    scaleViewport: boolean;
    background: string;
    qualityLevel: number;
    focus(): void;
    blur(): void;
    clipboardPasteFrom(text: string): void;
    disconnect(): void;
  }
}
