// Keeps the newest text in view, but only for a reader who is at the bottom already.

const NEAR_PX = 48;

export class Follower {
  constructor(scroller, content, toLatest) {
    this.scroller = scroller;
    this.toLatest = toLatest;
    this.following = true;
    scroller.addEventListener('scroll', () => this.#look(), { passive: true });
    const observer = new ResizeObserver(() => (this.following ? this.#jump() : this.#look()));
    observer.observe(content);
    observer.observe(scroller);
    toLatest.addEventListener('click', () => this.follow());
  }

  follow() {
    this.following = true;
    this.#jump();
  }

  #jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.toLatest.hidden = true;
  }

  #look() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    this.following = scrollHeight - scrollTop - clientHeight <= NEAR_PX;
    this.toLatest.hidden = this.following;
  }
}
