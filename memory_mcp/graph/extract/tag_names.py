"""Which tags may be names: 沙耶 and ダイズ may, 会議 and 重要 are topics.

Only a list of words separates a kanji name from a kanji word, so the most frequent tags are listed here.
"""

import re

# A lower-case tag is a word: lab, diary, home.
_WORD = re.compile("[a-z0-9_ -]+")
_TOPICS = frozenset(
    "重要 至急 緊急 大事 要確認 確認 完了 未完了 未定 保留 注意 秘密 極秘 記録 日記 日誌 備忘録 予定 日程 計画 目標 課題 問題 質問 回答 相談 連絡 報告 会議 会議録 議事録 打ち合わせ 打合せ 面談 面接 商談 出張 "
    "仕事 業務 作業 勤務 残業 休暇 職場 会社 社内 同僚 上司 部下 取引先 顧客 常連 客 営業 経理 総務 人事 開発 設計 企画 研修 研究 論文 発表 資料 書類 契約 予算 請求 売上 家計 お金 金銭 貯金 投資 保険 税金 買い物 通販 "
    "学校 授業 宿題 勉強 学習 試験 受験 資格 部活 進路 卒業 入学 先生 生徒 学生 友達 友人 親友 恋人 恋愛 結婚 離婚 夫婦 家族 両親 親 子供 子ども 育児 子育て 兄弟 姉妹 親戚 帰省 実家 家 家事 掃除 洗濯 料理 食事 食べ物 飲み物 "
    "朝食 昼食 夕食 弁当 外食 お酒 酒 店 お店 町 町の人 近所 地域 引っ越し 住まい 部屋 健康 病気 病院 通院 薬 睡眠 運動 散歩 旅行 旅 観光 温泉 移動 交通 電車 車 自転車 天気 季節 春 夏 秋 冬 正月 誕生日 記念日 行事 祭り "
    "趣味 好み 好き 嫌い 苦手 音楽 映画 読書 本 漫画 小説 写真 絵 芸術 動画 番組 推し 配信 遊び 将棋 野球 釣り 園芸 植物 花 動物 犬 猫 果物 野菜 ペット 服 美容 感情 気持ち 悩み 不安 嬉しい 悲しい 夢 思い出 過去 未来 人物 場所 "
    "人間関係 関係 会話 雑談 挨拶 約束 名前 設定 性格 世界観 物語 技術 機械 電話 情報 知識 英語 日本語 言葉 文化 歴史 政治 経済 社会 科学 数学 宗教 台風 地震 災害 事故 事件 その他 まとめ 要約 一般 個人 共有 公開 下書き "
    "メモ アイデア アイディア レシピ ゲーム ニュース タスク イベント プライベート スケジュール ミーティング プロジェクト テスト リスト ログ ノート トラブル バグ エラー ライフ ファッション グルメ カフェ ランチ ディナー スイーツ "
    "スポーツ トレーニング ダイエット ショッピング ビジネス プログラミング コード デザイン ドキュメント マンガ アニメ ドラマ ライブ バイト アルバイト サークル ゼミ レポート テーマ キャラ キャラクター ストーリー シナリオ デート パーティー "
    "プレゼント メール チャット データ サーバー システム ツール アプリ パソコン スマホ".split()
)


def may_be_a_name(tag: str) -> bool:
    """Whether a tag may be the name of an entity: it is no common word and not made of such words, as 会議/重要 is."""
    parts = [part for part in re.split("[/・:：#\\s]+", tag) if part]
    return _WORD.fullmatch(tag) is None and any(part not in _TOPICS for part in parts)
